package patch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// facts are what a manifest says in the fields that give rights, by path. They are
// found by the names of fields, at any depth: a pod is part of many kinds, and of
// kinds that nobody here knows.
type facts struct {
	byPath map[string]*fact
	// routes says that the kind may have fields that say whose requests come in, and ingress
	// that each of its rules without a host is for all of them.
	routes, ingress bool
}

// A fact is what is said at one path. Items of a list that have no names share a path,
// and have a value each: their order gives no rights.
type fact struct {
	path   []string
	values []string
	// container says that it is the security context of a container, which is known
	// also of one without.
	container bool
}

func newFacts() facts { return facts{byPath: map[string]*fact{}} }

// of collects what a manifest says.
func (f facts) of(kind schema.GroupKind, manifest map[string]any) {
	if isDenied(kind) {
		f.leaves(nil, manifest)
		return
	}
	f.routes, f.ingress = !slices.Contains(workloads, kind.Group), kind.Kind == "Ingress"
	for _, name := range slices.Sorted(maps.Keys(manifest)) {
		if kind == (schema.GroupKind{Kind: "ConfigMap"}) && (name == "data" || name == "binaryData") {
			continue // their keys are the user's own words
		}
		f.field(nil, name, manifest[name])
	}
}

// add notes a value; null is the same as none.
func (f facts) add(path []string, v any) {
	if v == nil {
		return
	}
	text, err := json.Marshal(v)
	if err != nil {
		text = fmt.Append(nil, err) // it was read from JSON
	}
	f.note(path, string(text))
}

func (f facts) note(path []string, value string) *fact {
	key := fmt.Sprintf("%q", path)
	if f.byPath[key] == nil {
		f.byPath[key] = &fact{path: slices.Clone(path)}
	}
	known := f.byPath[key]
	known.values = append(known.values, value)
	return known
}

// leaves notes every value of a kind of which nothing may change.
func (f facts) leaves(path []string, v any) {
	m := mapOf(v)
	if len(m) == 0 {
		f.add(path, v)
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		f.leaves(append(path, fieldStep(name)), m[name])
	}
}

// walk notes what a value says that may be anything.
func (f facts) walk(path []string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			f.field(path, name, v[name])
		}
	case []any:
		for i, step := range itemSteps(v) {
			f.walk(append(path, step), v[i])
		}
	}
}

// field notes what a field says.
func (f facts) field(path []string, name string, v any) {
	at := append(slices.Clone(path), fieldStep(name))
	list, isList := v.([]any)
	switch {
	case slices.Contains(wordMaps, name):
		f.words(at, v)
	case givesRights(name), name == "host" && len(path) > 0 && slices.Contains(probes, path[len(path)-1]):
		f.add(at, v)
	case f.routes && slices.Contains(routes, name) && !slices.ContainsFunc(path, func(step string) bool { return step == "hostAliases" }):
		f.add(at, v)
	case isList && f.ingress && name == "rules":
		f.rules(at, list)
	case isList && strings.HasSuffix(name, "ontainers"):
		f.containers(at, list)
	case isList && (name == "volumes" || strings.HasSuffix(name, "Volumes")):
		f.volumes(at, list)
	default:
		f.walk(at, v)
	}
}

// wordMaps are maps whose keys are the user's own words. In them only some keys
// mean something here.
var wordMaps = []string{"labels", "annotations", "matchLabels", "nodeSelector"}

// words notes what a map of words says.
func (f facts) words(path []string, v any) {
	m := mapOf(v)
	if m == nil {
		f.walk(path, v)
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		_, isText := m[key].(string)
		switch at := append(slices.Clone(path), fieldStep(key)); {
		case slices.ContainsFunc(rightMarks, func(prefix string) bool { return strings.HasPrefix(key, prefix) }):
			f.add(at, m[key])
		case !isText:
			f.field(path, key, m[key])
		}
	}
}

// containers notes what containers say. How one is confined is known also of one that
// does not say so: a container beside confined ones must be as they are.
func (f facts) containers(path []string, list []any) {
	for i, step := range itemSteps(list) {
		at, container := append(slices.Clone(path), step), mapOf(list[i])
		for _, name := range slices.Sorted(maps.Keys(container)) {
			if name != "securityContext" {
				f.field(at, name, container[name])
			}
		}
		text, _ := json.Marshal(container["securityContext"]) // it was read from JSON
		f.note(append(at, "securityContext"), string(text)).container = true
	}
}

// rules notes whose requests the rules of an Ingress are for: one without a host is for all.
func (f facts) rules(path []string, list []any) {
	for i, step := range itemSteps(list) {
		at, rule := append(slices.Clone(path), step), mapOf(list[i])
		text, _ := json.Marshal(rule["host"]) // it was read from JSON
		f.note(append(slices.Clone(at), "host"), string(text))
		for _, name := range slices.Sorted(maps.Keys(rule)) {
			if name != "host" {
				f.field(at, name, rule[name])
			}
		}
	}
}

// harmless are the sources of volumes that reach nothing but the pod itself and
// ConfigMaps.
var harmless = []string{"name", "emptyDir", "configMap", "downwardAPI"}

// volumes notes what volumes give a pod.
func (f facts) volumes(path []string, list []any) {
	for i, step := range itemSteps(list) {
		at, volume := append(slices.Clone(path), step), mapOf(list[i])
		if volume == nil {
			f.walk(at, list[i])
		}
		for _, source := range slices.Sorted(maps.Keys(volume)) {
			sources, isList := mapOf(volume[source])["sources"].([]any)
			switch inner := append(slices.Clone(at), fieldStep(source)); {
			case slices.Contains(harmless, source):
			case source == "projected" && isList:
				f.volumes(append(inner, "sources"), sources)
			default:
				f.add(inner, volume[source])
			}
		}
	}
}

// engineMark begins the names of the engine's own labels and annotations.
var engineMark = Kind.Group + "/"

// marks notes the engine's own labels and annotations, at any depth: pods carry those
// of their template.
func (f facts) marks(path []string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := append(slices.Clone(path), fieldStep(name))
			if strings.HasPrefix(name, engineMark) {
				f.add(at, v[name])
				continue
			}
			f.marks(at, v[name])
		}
	case []any:
		for i, step := range itemSteps(v) {
			f.marks(append(slices.Clone(path), step), v[i])
		}
	}
}

// differences returns the paths, in order, at which two manifests say different things.
func differences(was, is facts) [][]string {
	all := maps.Clone(was.byPath)
	maps.Copy(all, is.byPath)
	usual, alike := was.confinement()
	var out [][]string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		before, after := was.byPath[key], is.byPath[key]
		switch {
		case before != nil && after != nil && slices.Equal(slices.Sorted(slices.Values(before.values)), slices.Sorted(slices.Values(after.values))):
		case all[key].container && after == nil: // without a container there is nothing to confine
		case all[key].container && before == nil && alike && !slices.ContainsFunc(after.values, func(v string) bool { return v != usual }):
		default:
			out = append(out, all[key].path)
		}
	}
	return out
}

// confinement returns the security context that all containers have, if they all have the
// same. Where there is none, it is no security context.
func (f facts) confinement() (usual string, alike bool) {
	usual, first := "null", true
	for _, known := range f.byPath {
		if !known.container {
			continue
		}
		for _, v := range known.values {
			if !first && v != usual {
				return "", false
			}
			usual, first = v, false
		}
	}
	return usual, true
}

// anyItem is the step to an item of a list that has no name.
const anyItem = "[]"

// isItem reports whether a step leads to an item of a list.
func isItem(step string) bool { return strings.HasPrefix(step, "[") }

// fieldStep returns the step to a field. One whose name looks like the step to an item
// is quoted.
func fieldStep(name string) string {
	if isItem(name) || strings.HasPrefix(name, `"`) {
		return strconv.Quote(name)
	}
	return name
}

// itemSteps returns the steps to the items of a list: by their names, if all have one of
// their own.
func itemSteps(list []any) []string {
	out, seen := make([]string, len(list)), map[string]bool{}
	for i, item := range list {
		name, _ := mapOf(item)["name"].(string)
		if name == "" || seen[name] {
			return slices.Repeat([]string{anyItem}, len(list))
		}
		seen[name] = true
		out[i] = "[" + name + "]"
	}
	return out
}

func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}
