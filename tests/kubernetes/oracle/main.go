// Says what kube-scheduler's filters say: for each line of standard input, a cluster and questions, one line of answers.
//
//	oracle < cases.jsonl > answers.jsonl
//
// A case is {"id": any, "objects": a List as kubectl prints it, "pods": ["namespace/name", ...]}; without "pods" all that
// the scheduler could be asked for. The answer is {"id", "answers": [{"pod", "refused": {node: {plugin: reason}}}]}: nodes
// that are not named are feasible. A pod that runs is first taken off its node.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
)

type question struct {
	ID      json.RawMessage `json:"id"`
	Objects json.RawMessage `json:"objects"`
	Pods    []string        `json:"pods"`
}

type verdict struct {
	Pod     string                       `json:"pod"`
	Refused map[string]map[string]string `json:"refused"`
}

type reply struct {
	ID      json.RawMessage `json:"id"`
	Answers []verdict       `json:"answers,omitempty"`
	Error   string          `json:"error,omitempty"`
}

func run(in io.Reader, out io.Writer) error {
	klog.SetLogger(klog.Logger{}) // the plugins' own messages are not asked for
	scheduler, err := newScheduler(context.Background())
	if err != nil {
		return err
	}
	if len(os.Args) == 2 && os.Args[1] == "--plugins" {
		return json.NewEncoder(out).Encode(scheduler.names())
	}
	reader := bufio.NewReaderSize(in, 1<<20)
	writer := bufio.NewWriter(out)
	defer writer.Flush()
	answers := json.NewEncoder(writer)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			var asked question
			if err := json.Unmarshal(line, &asked); err != nil {
				return fmt.Errorf("a line that is no case: %w", err)
			}
			answered := reply{ID: asked.ID}
			if answered.Answers, err = scheduler.judge(asked); err != nil {
				answered = reply{ID: asked.ID, Error: err.Error()}
			}
			if err := answers.Encode(answered); err != nil {
				return err
			}
			if reader.Buffered() == 0 {
				if err := writer.Flush(); err != nil {
					return err
				}
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}
