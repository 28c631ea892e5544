package main

import (
	"context"
	"fmt"
	"os"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

func env(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

func main() {
	ctx := context.Background()
	client := anthropic.NewClient(
		option.WithBaseURL(env("GATEWAY_URL", "http://127.0.0.1:8080")), // without /v1
		option.WithAPIKey(env("GATEWAY_KEY", "sandbox-demo-key")),
	)
	question := anthropic.MessageNewParams{
		Model:     "claude-sonnet-4-6",
		MaxTokens: 200,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hello!"))},
	}
	message, err := client.Messages.New(ctx, question)
	if err != nil {
		panic(err)
	}
	fmt.Println(message.Content[0].Text)
	// The lines above are the snippet of docs/clients.md.
	others(ctx, client, question, message)
}
