// Command readiness prints how kstatus judges each object of the given file, one JSON document a line.
//
// `ours` passes through: the word we answer where kstatus gives an error.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

type golden struct {
	Case   string          `json:"case"`
	Object json.RawMessage `json:"object"`
	Status string          `json:"status,omitempty"`
	Error  string          `json:"error,omitempty"`
	Ours   string          `json:"ours,omitempty"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: readiness FILE")
		os.Exit(2)
	}
	text, err := os.ReadFile(os.Args[1])
	must(err)
	var cases []golden
	must(yaml.UnmarshalStrict(text, &cases))
	for _, c := range cases {
		object := &unstructured.Unstructured{}
		must(object.UnmarshalJSON(c.Object))
		result, err := status.Compute(object)
		if err != nil {
			c.Status, c.Error = status.UnknownStatus.String(), err.Error()
		} else {
			c.Status = result.Status.String()
		}
		line, err := json.Marshal(c)
		must(err)
		fmt.Println(string(line))
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
