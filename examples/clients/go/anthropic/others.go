package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
)

func check(feature string, holds bool, err error) {
	if err != nil || !holds {
		panic(fmt.Sprint(feature, ": ", err))
	}
	fmt.Println("ok", feature)
}

func others(ctx context.Context, client anthropic.Client, question anthropic.MessageNewParams, message *anthropic.Message) {
	check("chat", strings.Contains(message.Content[0].Text, "Hello!"), nil)

	stream, whole := client.Messages.NewStreaming(ctx, question), anthropic.Message{}
	for stream.Next() {
		if err := whole.Accumulate(stream.Current()); err != nil {
			panic(err)
		}
	}
	check("stream", len(whole.Content) > 0 && strings.Contains(whole.Content[0].Text, "Hello!"), stream.Err())

	asking := question
	schema := anthropic.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]string{"type": "string"}}}
	asking.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(schema, "weather")}
	asking.ToolChoice = anthropic.ToolChoiceParamOfTool("weather")
	asked, err := client.Messages.New(ctx, asking)
	if err == nil {
		asking.ToolChoice = anthropic.ToolChoiceUnionParam{}
		result := anthropic.NewToolResultBlock(asked.Content[0].ID, "21 degrees", false)
		asking.Messages = append(asking.Messages, asked.ToParam(), anthropic.NewUserMessage(result))
		asked, err = client.Messages.New(ctx, asking)
	}
	check("tools", err == nil && asked.Content[0].Text != "", err)

	counted, err := client.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{
		Model: question.Model, Messages: question.Messages,
	})
	check("count-tokens", err == nil && counted.InputTokens > 0, err)

	models, found := client.Models.ListAutoPaging(ctx, anthropic.ModelListParams{}), false
	for models.Next() {
		found = found || models.Current().ID == "claude-sonnet-4-6"
	}
	check("models", found, models.Err())
}
