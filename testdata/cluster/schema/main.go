// Command schema prints how strategic merge treats every field of every built-in kind.
//
// It walks the Go types that the client-side scheme of Helm knows (client-go's scheme and both versions of
// apiextensions) and reads the struct tags that the strategic merge package itself reads.
//
// Output, one line each:
//
//	kind <group>/<version>/<kind> <type number>
//	type <name> <field>=<shape>[:<strategies>[:<merge key>]] ...
//
// Types are numbered from 0 in the order of their lines. A shape is a type number, `map`, `slice`, `interface`, or one
// of these after `[]`; `[]-` is a list of scalars. Scalar fields are left out: a patch never looks them up.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

type table struct {
	ids   map[reflect.Type]int
	lines []string
}

func main() {
	known := runtime.NewScheme()
	must(scheme.AddToScheme(known))
	must(apiextensionsv1.AddToScheme(known))
	must(apiextensionsv1beta1.AddToScheme(known))

	types := &table{ids: map[reflect.Type]int{}}
	kinds := []string{}
	all := known.AllKnownTypes()
	names := []string{}
	roots := map[string]reflect.Type{}
	for gvk, t := range all {
		if isManifestKind(gvk.Version, t) {
			name := gvk.Group + "/" + gvk.Version + "/" + gvk.Kind
			names = append(names, name)
			roots[name] = t
		}
	}
	sort.Strings(names)
	for _, name := range names {
		kinds = append(kinds, fmt.Sprintf("kind %s %d", name, types.add(roots[name])))
	}
	out := bufio.NewWriter(os.Stdout)
	for _, line := range append(kinds, types.lines...) {
		fmt.Fprintln(out, line)
	}
	must(out.Flush())
}

// isManifestKind tells objects from lists, options and events of the watch protocol.
func isManifestKind(version string, t reflect.Type) bool {
	meta, found := t.FieldByName("ObjectMeta")
	return version != runtime.APIVersionInternal && found && meta.Anonymous
}

func (types *table) add(t reflect.Type) int {
	if id, found := types.ids[t]; found {
		return id
	}
	id := len(types.lines)
	types.ids[t] = id
	types.lines = append(types.lines, "")
	line := "type " + t.Name()
	for _, field := range types.fields(t) {
		line += " " + field
	}
	types.lines[id] = line
	return id
}

func (types *table) fields(t reflect.Type) []string {
	found := []string{}
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || (!field.IsExported() && !field.Anonymous):
		case name == "" && field.Anonymous && field.Type.Kind() == reflect.Struct:
			found = append(found, types.fields(field.Type)...)
		default:
			if name == "" {
				name = field.Name
			}
			if shape := types.shape(field.Type); shape != "" {
				found = append(found, name+"="+shape+strategy(field.Tag))
			}
		}
	}
	return found
}

func (types *table) shape(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		return fmt.Sprint(types.add(t))
	case reflect.Map, reflect.Interface:
		return t.Kind().String()
	case reflect.Array, reflect.Slice:
		return "[]" + types.element(t.Elem())
	default:
		return ""
	}
}

func (types *table) element(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Array, reflect.Slice:
		return "slice"
	default:
		if shape := types.shape(t); shape != "" {
			return shape
		}
		return "-"
	}
}

func strategy(tag reflect.StructTag) string {
	strategies, key := tag.Get("patchStrategy"), tag.Get("patchMergeKey")
	switch {
	case key != "":
		return ":" + strategies + ":" + key
	case strategies != "":
		return ":" + strategies
	default:
		return ""
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
