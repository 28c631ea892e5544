package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

func check(feature string, holds bool, err error) {
	if err != nil || !holds {
		panic(fmt.Sprint(feature, ": ", err))
	}
	fmt.Println("ok", feature)
}

func others(ctx context.Context, client openai.Client, question openai.ChatCompletionNewParams, completion *openai.ChatCompletion) {
	check("chat", strings.Contains(completion.Choices[0].Message.Content, "Hello!"), nil)

	stream, text := client.Chat.Completions.NewStreaming(ctx, question), ""
	for stream.Next() {
		if chunk := stream.Current(); len(chunk.Choices) > 0 {
			text += chunk.Choices[0].Delta.Content
		}
	}
	check("stream", strings.Contains(text, "Hello!"), stream.Err())

	asking := question
	asking.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: "weather",
		Parameters: openai.FunctionParameters{
			"type": "object", "properties": map[string]any{"city": map[string]string{"type": "string"}},
		},
	})}
	asked, err := client.Chat.Completions.New(ctx, asking)
	if err == nil {
		asking.Messages = append(asking.Messages, asked.Choices[0].Message.ToParam(),
			openai.ToolMessage("21 degrees", asked.Choices[0].Message.ToolCalls[0].ID))
		asked, err = client.Chat.Completions.New(ctx, asking)
	}
	check("tools", err == nil && asked.Choices[0].Message.Content != "", err)

	speech, err := client.Audio.Speech.New(ctx, openai.AudioSpeechNewParams{
		Model: "tts-1", Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("alloy")}, Input: "Hello!",
	})
	if err != nil {
		panic(err)
	}
	audio, err := io.ReadAll(speech.Body)
	check("speech", len(audio) > 1000, err)

	file := openai.File(strings.NewReader(string(audio)), "hello.mp3", "audio/mpeg")
	heard, err := client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{Model: "whisper-1", File: file})
	check("transcription", err == nil && strings.Contains(heard.Text, "checksum"), err)

	input := func(text string) responses.ResponseNewParamsInputUnion {
		return responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}
	}
	first, err := client.Responses.New(ctx, responses.ResponseNewParams{Model: "gpt-5-mini", Input: input("Hello!")})
	if err != nil {
		panic(err)
	}
	events, last := client.Responses.NewStreaming(ctx, responses.ResponseNewParams{
		Model: "gpt-5-mini", Input: input("And now?"), PreviousResponseID: openai.String(first.ID),
	}), ""
	for events.Next() {
		if event := events.Current(); event.Type == "response.completed" {
			last = event.Response.OutputText()
		}
	}
	check("responses", strings.Contains(first.OutputText(), "Hello!") && strings.Contains(last, "And now?"), events.Err())

	models := client.Models.ListAutoPaging(ctx)
	found := false
	for models.Next() {
		found = found || models.Current().ID == "gpt-4o-mini"
	}
	check("models", found, models.Err())
}
