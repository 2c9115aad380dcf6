// Command manifests prints what Helm makes of stored manifests: `objects FILE…` the objects that its client builds from
// each, `orders` the kinds in the orders in which Helm 3 and Helm 4 install and remove them.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v3 "helm.sh/helm/v3/pkg/releaseutil"
	v4 "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/cli-runtime/pkg/resource"
)

func main() {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "objects":
		for _, file := range os.Args[2:] {
			print(built(file))
		}
	case len(os.Args) == 2 && os.Args[1] == "orders":
		print(orders())
	default:
		fmt.Fprintln(os.Stderr, "usage: manifests objects FILE… | manifests orders")
		os.Exit(2)
	}
}

type answer struct {
	Case    string `json:"case"`
	Objects []any  `json:"objects"`
	Err     string `json:"err"`
}

// built reads a manifest through the builder that kube.Client.Build of both Helms uses, without a server.
func built(file string) answer {
	text, err := os.Open(file)
	must(err)
	defer text.Close()
	infos, err := resource.NewLocalBuilder().Unstructured().ContinueOnError().Flatten().Stream(text, "").Do().Infos()
	a := answer{Case: filepath.Base(file), Objects: []any{}}
	for _, info := range infos {
		a.Objects = append(a.Objects, info.Object)
	}
	if err != nil {
		a.Err = err.Error()
	}
	return a
}

// orders lets both Helms sort two objects of each kind that either knows, and of kinds that neither does.
func orders() map[string][]string {
	var files = map[string]string{}
	kinds := append([]string{"Widget", "Apple"}, v4.UninstallOrder...)
	var documents []string
	for _, name := range []string{"b", "a"} {
		for _, kind := range kinds {
			documents = append(documents, fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata:\n  name: %s\n", kind, name))
		}
	}
	files["t.yaml"] = strings.Join(documents, "---\n")
	sorted := map[string][]string{"given": {}}
	for _, document := range documents {
		lines := strings.Split(document, "\n")
		sorted["given"] = append(sorted["given"], strings.TrimPrefix(lines[1], "kind: ")+"/"+strings.TrimPrefix(lines[3], "  name: "))
	}
	for how, order := range map[string]v3.KindSortOrder{"helm3 install": v3.InstallOrder, "helm3 uninstall": v3.UninstallOrder} {
		_, found, err := v3.SortManifests(files, nil, order)
		must(err)
		for _, m := range found {
			sorted[how] = append(sorted[how], m.Head.Kind+"/"+m.Head.Metadata.Name)
		}
	}
	for how, order := range map[string]v4.KindSortOrder{"helm4 install": v4.InstallOrder, "helm4 uninstall": v4.UninstallOrder} {
		_, found, err := v4.SortManifests(files, nil, order)
		must(err)
		for _, m := range found {
			sorted[how] = append(sorted[how], m.Head.Kind+"/"+m.Head.Metadata.Name)
		}
	}
	return sorted
}

func print(value any) {
	line, err := json.Marshal(value)
	must(err)
	fmt.Println(string(line))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
