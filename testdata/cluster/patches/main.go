// Command patches prints the patches that Helm's client side would send, with the packages Helm itself uses.
//
//	patches cases FILE.yaml     the cases of a file written by hand
//	patches random SEED COUNT   random cases
//
// Output: one JSON document a line. A case has the three objects, the patch (or the error), and what the object is once the
// API server has applied it; for custom resources `twoWay` is what Helm sends on upgrade and `patch` on taking ownership.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"

	jsonpatchv5 "github.com/evanphx/json-patch/v5"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
)

// written is a case as written by hand. `of` is group/version/kind; `at` is a path to put the three values at.
type written struct {
	Case     string `json:"case"`
	Of       string `json:"of"`
	At       string `json:"at"`
	Original any    `json:"original"`
	Modified any    `json:"modified"`
	Current  any    `json:"current"`
	Patch    any    `json:"patch"`
}

type golden struct {
	Case       string          `json:"case"`
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Original   json.RawMessage `json:"original"`
	Modified   json.RawMessage `json:"modified"`
	Current    json.RawMessage `json:"current"`
	Strategic  bool            `json:"strategic"`
	Given      bool            `json:"given,omitempty"`
	Patch      json.RawMessage `json:"patch,omitempty"`
	Error      string          `json:"error,omitempty"`
	TwoWay     json.RawMessage `json:"twoWay,omitempty"`
	Applied    json.RawMessage `json:"applied,omitempty"`
	ApplyError string          `json:"applyError,omitempty"`
}

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "cases":
		for _, w := range read(os.Args[2]) {
			show(w)
		}
	case len(os.Args) == 4 && os.Args[1] == "random":
		seed, err := strconv.ParseInt(os.Args[2], 10, 64)
		must(err)
		count, err := strconv.Atoi(os.Args[3])
		must(err)
		random := generator{rand.New(rand.NewSource(seed))}
		for number := range count {
			show(random.next(number))
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: patches cases FILE | patches random SEED COUNT")
		os.Exit(2)
	}
}

func read(file string) []written {
	text, err := os.ReadFile(file)
	must(err)
	var cases []written
	must(yaml.UnmarshalStrict(text, &cases))
	return cases
}

func show(w written) {
	parts := strings.Split(w.Of, "/")
	kind, apiVersion := parts[len(parts)-1], strings.Join(parts[:len(parts)-1], "/")
	g := golden{Case: w.Case, APIVersion: apiVersion, Kind: kind}
	g.Original, g.Modified = w.object(w.Original, apiVersion, kind), w.object(w.Modified, apiVersion, kind)
	g.Current = g.Original
	if w.Current != nil {
		g.Current = w.object(w.Current, apiVersion, kind)
	}
	if w.Current == "absent" {
		g.Current = json.RawMessage("null")
	}
	g.create()
	if w.Patch != nil {
		g.Given, g.Error, g.Patch = true, "", encode(w.Patch)
	}
	if g.Error == "" {
		g.apply()
	}
	fmt.Println(string(encode(g)))
}

// object puts the value at its path and says what it is.
func (w written) object(value any, apiVersion, kind string) json.RawMessage {
	if value == nil {
		value = map[string]any{}
	}
	root, whole := value.(map[string]any)
	if w.At != "" || !whole {
		path := strings.Split(w.At, ".")
		for i := len(path) - 1; i >= 0; i-- {
			value = map[string]any{path[i]: value}
		}
		root = value.(map[string]any)
	}
	fill := func(in map[string]any, key string, value any) {
		if _, found := in[key]; !found {
			in[key] = value
		}
	}
	fill(root, "apiVersion", apiVersion)
	fill(root, "kind", kind)
	fill(root, "metadata", map[string]any{})
	if metadata, ok := root["metadata"].(map[string]any); ok {
		fill(metadata, "name", "x")
	}
	return encode(root)
}

func (g *golden) versioned() runtime.Object {
	object := &unstructured.Unstructured{}
	must(json.Unmarshal(g.Modified, &object.Object))
	mapping := &meta.RESTMapping{GroupVersionKind: object.GroupVersionKind()}
	return kube.AsVersioned(&resource.Info{Object: object, Mapping: mapping})
}

func (g *golden) create() {
	defer func() {
		if problem := recover(); problem != nil {
			g.Error = fmt.Sprintf("panic: %v", problem)
		}
	}()
	versioned := g.versioned()
	_, isUnstructured := versioned.(runtime.Unstructured)
	_, isOldCRD := versioned.(*apiextensionsv1beta1.CustomResourceDefinition)
	g.Strategic = !isUnstructured && !isOldCRD
	var err error
	if g.Strategic {
		schema, problem := strategicpatch.NewPatchMetaFromStruct(versioned)
		must(problem)
		g.Patch, err = strategicpatch.CreateThreeWayMergePatch(g.Original, g.Modified, g.Current, schema, true)
	} else {
		g.Patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(g.Original, g.Modified, g.Current,
			mergepatch.RequireKeyUnchanged("apiVersion"), mergepatch.RequireKeyUnchanged("kind"),
			mergepatch.RequireMetadataKeyUnchanged("name"))
		two, problem := jsonpatchv5.CreateMergePatch(g.Original, g.Modified)
		must(problem)
		g.TwoWay = two
	}
	if err != nil {
		g.Patch, g.Error = nil, err.Error()
	}
}

func (g *golden) apply() {
	defer func() {
		if problem := recover(); problem != nil {
			g.ApplyError = fmt.Sprintf("panic: %v", problem)
		}
	}()
	current := []byte(g.Current)
	if string(current) == "null" {
		current = []byte("{}")
	}
	var err error
	if g.Strategic {
		g.Applied, err = strategicpatch.StrategicMergePatch(current, g.Patch, g.versioned())
	} else {
		g.Applied, err = jsonpatch.MergePatch(current, g.Patch)
	}
	if err != nil {
		g.Applied, g.ApplyError = nil, err.Error()
	}
}

func encode(value any) json.RawMessage {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	must(encoder.Encode(value))
	return bytes.TrimSpace(buffer.Bytes())
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
