package main

import (
	"context"
	"fmt"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func env(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

func main() {
	ctx := context.Background()
	url := env("GATEWAY_URL", "http://127.0.0.1:8080")
	client := openai.NewClient(
		option.WithBaseURL(url+"/v1"),
		option.WithAPIKey(env("GATEWAY_KEY", "sandbox-demo-key")),
	)
	question := openai.ChatCompletionNewParams{
		Model:    "gpt-4o-mini",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello!")},
	}
	completion, err := client.Chat.Completions.New(ctx, question)
	if err != nil {
		panic(err)
	}
	fmt.Println(completion.Choices[0].Message.Content)
	// The lines above are the snippet of docs/clients.md.
	others(ctx, client, question, completion)
}
