// Command yamlcases answers every case of a file anew with sigs.k8s.io/yaml: `parse` reads YAML, `emit` writes it.
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

type golden struct {
	In json.RawMessage `json:"in,omitempty"`
	// Hex is a text that is no UTF-8, in place of In.
	Hex string `json:"hex,omitempty"`
	Out string `json:"out"`
	Err string `json:"err"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: yamlcases parse|emit FILE")
		os.Exit(2)
	}
	text, err := os.ReadFile(os.Args[2])
	must(err)
	var cases []golden
	must(json.Unmarshal(text, &cases))
	fmt.Println("[")
	for i, c := range cases {
		out, err := answer(os.Args[1], c)
		c.Out, c.Err = string(out), ""
		if err != nil {
			c.Out, c.Err = "", err.Error()
		}
		line, err := json.Marshal(c)
		must(err)
		comma := ","
		if i == len(cases)-1 {
			comma = ""
		}
		fmt.Printf("%s%s\n", line, comma)
	}
	fmt.Println("]")
}

func answer(how string, c golden) ([]byte, error) {
	if how == "emit" {
		return yaml.JSONToYAML(c.In)
	}
	if c.In == nil {
		bytes, err := hex.DecodeString(c.Hex)
		must(err)
		return yaml.YAMLToJSON(bytes)
	}
	var text string
	must(json.Unmarshal(c.In, &text))
	return yaml.YAMLToJSON([]byte(text))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
