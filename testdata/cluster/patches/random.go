package main

import (
	"fmt"
	"math/rand"
)

// generator makes up small objects: three independent draws from few names and values, so that everything collides.
type generator struct{ *rand.Rand }

func (g generator) next(number int) written {
	kinds := []struct {
		of, at string
		draw   func() any
	}{
		{"apps/v1/Deployment", "spec.template.spec", g.pod},
		{"v1/Pod", "spec", g.pod},
		{"v1/Service", "spec", g.service},
		{"v1/ConfigMap", "metadata", g.metadata},
		{"example.com/v1/Thing", "spec", g.thing},
	}
	kind := kinds[number%len(kinds)]
	return written{
		Case: fmt.Sprintf("random %d", number), Of: kind.of, At: kind.at,
		Original: kind.draw(), Modified: kind.draw(), Current: kind.draw(),
	}
}

func (g generator) pod() any {
	pod := map[string]any{}
	g.maybe(pod, "containers", func() any {
		return g.keyed("name", []string{"a", "b", "c"}, g.container)
	})
	g.maybe(pod, "volumes", func() any {
		return g.keyed("name", []string{"u", "v"}, func(volume map[string]any) {
			volume[g.pick("emptyDir", "hostPath")] = map[string]any{g.pick("x", "y"): "z"}
		})
	})
	g.maybe(pod, "tolerations", func() any {
		return g.keyed("key", []string{"k", "l"}, func(map[string]any) {})
	})
	g.maybe(pod, "nodeSelector", g.labels)
	g.maybe(pod, "restartPolicy", func() any { return g.pick("Always", "Never") })
	return pod
}

func (g generator) container(container map[string]any) {
	g.maybe(container, "image", func() any { return g.pick("i:1", "i:2") })
	g.maybe(container, "args", func() any { return g.words("-a", "-b") })
	g.maybe(container, "env", func() any {
		return g.keyed("name", []string{"E", "F", "G"}, func(env map[string]any) {
			if g.Intn(3) == 0 {
				env["valueFrom"] = map[string]any{"fieldRef": map[string]any{"fieldPath": g.pick("p", "q")}}
			} else {
				env["value"] = g.pick("1", "2")
			}
		})
	})
	if g.Intn(2) == 0 {
		g.maybe(container, "ports", func() any { return g.ports("containerPort") })
	}
}

func (g generator) ports(key string) any {
	ports := []any{}
	for range g.Intn(4) {
		port := map[string]any{key: 80 + g.Intn(3)}
		g.maybe(port, "protocol", func() any { return g.pick("TCP", "UDP") })
		g.maybe(port, "name", func() any { return g.pick("m", "n") })
		ports = append(ports, port)
	}
	return ports
}

func (g generator) service() any {
	service := map[string]any{}
	g.maybe(service, "ports", func() any { return g.ports("port") })
	g.maybe(service, "selector", g.labels)
	g.maybe(service, "externalIPs", func() any { return g.words("1.1.1.1", "2.2.2.2") })
	g.maybe(service, "type", func() any { return g.pick("ClusterIP", "NodePort") })
	return service
}

func (g generator) metadata() any {
	metadata := map[string]any{}
	g.maybe(metadata, "labels", g.labels)
	g.maybe(metadata, "annotations", g.labels)
	g.maybe(metadata, "finalizers", func() any { return g.words("f/a", "f/b", "f/c", "f/d") })
	g.maybe(metadata, "ownerReferences", func() any {
		return g.keyed("uid", []string{"1", "2", "3"}, func(owner map[string]any) { owner["kind"] = g.pick("K", "L") })
	})
	return metadata
}

func (g generator) thing() any {
	thing := map[string]any{}
	for _, key := range []string{"a", "b", "c", "d"} {
		g.maybe(thing, key, func() any { return g.value(3) })
	}
	return thing
}

func (g generator) value(depth int) any {
	kind := g.Intn(7)
	switch {
	case kind < 2 && depth > 0:
		value := map[string]any{}
		for range g.Intn(3) {
			value[g.pick("x", "y")] = g.value(depth - 1)
		}
		return value
	case kind == 2 && depth > 0:
		value := []any{}
		for range g.Intn(3) {
			value = append(value, g.value(depth-1))
		}
		return value
	case kind == 3:
		return nil
	case kind == 4:
		return g.Intn(2)
	case kind == 5:
		return g.Intn(2) == 0
	default:
		return g.pick("s", "t")
	}
}

func (g generator) labels() any {
	labels := map[string]any{}
	for range g.Intn(3) {
		labels[g.pick("l", "m", "n")] = g.pick("1", "2")
	}
	return labels
}

// words are some of the given ones in some order.
func (g generator) words(all ...string) any {
	words := []any{}
	for _, index := range g.Perm(len(all))[:g.Intn(len(all)+1)] {
		words = append(words, all[index])
	}
	return words
}

func (g generator) keyed(key string, names []string, fill func(map[string]any)) any {
	items := []any{}
	for _, index := range g.Perm(len(names))[:g.Intn(len(names)+1)] {
		item := map[string]any{key: names[index]}
		fill(item)
		items = append(items, item)
	}
	return items
}

func (g generator) maybe(in map[string]any, key string, value func() any) {
	switch g.Intn(8) {
	case 0, 1, 2:
	case 3:
		if g.Intn(4) == 0 {
			in[key] = nil
			return
		}
		in[key] = value()
	default:
		in[key] = value()
	}
}

func (g generator) pick(words ...string) string { return words[g.Intn(len(words))] }
