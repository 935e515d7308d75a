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

// privileges are the values of the fields of a manifest that give privileges, by path. The
// fields are found by name, at any depth: many kinds contain a pod template, also kinds that
// the engine does not know.
type privileges struct {
	byPath map[string]*privilege
	// hasRoutingFields says that the kind may have fields that decide which requests it
	// receives.
	hasRoutingFields bool
	// hostByItem are the lists of the kind of which an item without a host receives the requests
	// of all hosts, each with the field of the item that has the host.
	hostByItem map[string]string
}

// A privilege is the values at one path. Items of a list that have no names share a path, and
// add one value each: their order gives no privileges.
type privilege struct {
	path   []string
	values []string
	// isSecurityContext says that it is the security context of a container. It is recorded
	// also for a container without one.
	isSecurityContext bool
}

func newPrivileges() privileges { return privileges{byPath: map[string]*privilege{}} }

// addManifest records the privileges of a manifest.
func (f privileges) addManifest(kind schema.GroupKind, manifest map[string]any) {
	if isDeniedKind(kind) {
		f.addLeaves(nil, manifest)
		return
	}
	f.hasRoutingFields, f.hostByItem = !slices.Contains(workloadGroups, kind.Group), hostsByItem[kind.Kind]
	for _, name := range slices.Sorted(maps.Keys(manifest)) {
		if kind == (schema.GroupKind{Kind: "ConfigMap"}) && (name == "data" || name == "binaryData") {
			continue // their keys are arbitrary
		}
		f.addField(nil, name, manifest[name])
	}
}

// addValue records a value. Null counts as absent.
func (f privileges) addValue(path []string, v any) {
	if v == nil {
		return
	}
	text, err := json.Marshal(v)
	if err != nil {
		text = fmt.Append(nil, err) // unreachable: the value was decoded from JSON
	}
	f.record(path, string(text))
}

func (f privileges) record(path []string, value string) *privilege {
	key := fmt.Sprintf("%q", path)
	if f.byPath[key] == nil {
		f.byPath[key] = &privilege{path: slices.Clone(path)}
	}
	known := f.byPath[key]
	known.values = append(known.values, value)
	return known
}

// addLeaves records every value, for a denied kind.
func (f privileges) addLeaves(path []string, v any) {
	m := mapOf(v)
	if len(m) == 0 {
		f.addValue(path, v)
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		f.addLeaves(append(path, fieldStep(name)), m[name])
	}
}

// addNested records the privileges within a value of any type.
func (f privileges) addNested(path []string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			f.addField(path, name, v[name])
		}
	case []any:
		for i, step := range itemSteps(v) {
			f.addNested(append(path, step), v[i])
		}
	}
}

// addField records the privileges of a field.
func (f privileges) addField(path []string, name string, v any) {
	at := append(slices.Clone(path), fieldStep(name))
	list, isList := v.([]any)
	_, isText := v.(string)
	switch {
	case slices.Contains(stringMaps, name):
		f.addKeyedStrings(at, v)
	case isPrivilegeField(name), name == "host" && len(path) > 0 && slices.Contains(probeFields, path[len(path)-1]):
		f.addValue(at, v)
	case f.hasRoutingFields && slices.Contains(routingFields, name) && !slices.ContainsFunc(path, func(step string) bool { return step == "hostAliases" }):
		f.addValue(at, v)
	case f.hasRoutingFields && name == "match" && isText: // an expression, as Traefik has it: Host(`a.example.com`)
		f.addValue(at, v)
	case isList && f.hostByItem[name] != "":
		f.addItems(at, list, f.hostByItem[name])
	case isList && strings.HasSuffix(name, "ontainers"):
		f.addItems(at, list, "securityContext")
	case isList && (name == "volumes" || strings.HasSuffix(name, "Volumes")):
		f.addVolumes(at, list)
	default:
		f.addNested(at, v)
	}
}

// stringMaps are maps with arbitrary keys, of which only some give privileges.
var stringMaps = []string{"labels", "annotations", "matchLabels", "nodeSelector"}

// addKeyedStrings records the privileges in a map with arbitrary keys.
func (f privileges) addKeyedStrings(path []string, v any) {
	m := mapOf(v)
	if m == nil {
		f.addNested(path, v)
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		_, isText := m[key].(string)
		switch at := append(slices.Clone(path), fieldStep(key)); {
		case isPrivilegeKey(key):
			f.addValue(at, m[key])
		case !isText:
			f.addField(path, key, m[key])
		}
	}
}

// addItems records the privileges of items that give privileges also without a field: an item
// without a host receives the requests of all hosts, and a container that a patch adds must be
// confined like the others.
func (f privileges) addItems(path []string, list []any, field string) {
	for i, step := range itemSteps(list) {
		at, item := append(slices.Clone(path), step), mapOf(list[i])
		for _, name := range slices.Sorted(maps.Keys(item)) {
			if name != field {
				f.addField(at, name, item[name])
			}
		}
		text, _ := json.Marshal(item[field]) // no error: it was decoded from JSON
		f.record(append(at, field), string(text)).isSecurityContext = field == "securityContext"
	}
}

// harmlessVolumeSources are the volume sources that only give access to the pod itself and to
// ConfigMaps.
var harmlessVolumeSources = []string{"name", "emptyDir", "configMap", "downwardAPI"}

// addVolumes records the volumes that give a pod access to something else.
func (f privileges) addVolumes(path []string, list []any) {
	for i, step := range itemSteps(list) {
		at, volume := append(slices.Clone(path), step), mapOf(list[i])
		if volume == nil {
			f.addNested(at, list[i])
		}
		for _, source := range slices.Sorted(maps.Keys(volume)) {
			sources, isList := mapOf(volume[source])["sources"].([]any)
			switch inner := append(slices.Clone(at), fieldStep(source)); {
			case slices.Contains(harmlessVolumeSources, source):
			case source == "projected" && isList:
				f.addVolumes(append(inner, "sources"), sources)
			default:
				f.addValue(inner, volume[source])
			}
		}
	}
}

// enginePrefix is the prefix of the engine's own labels and annotations.
var enginePrefix = Kind.Group + "/"

// addEngineMetadata records the engine's own labels and annotations, at any depth: pods inherit
// those of their template.
func (f privileges) addEngineMetadata(path []string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := append(slices.Clone(path), fieldStep(name))
			if strings.HasPrefix(name, enginePrefix) {
				f.addValue(at, v[name])
				continue
			}
			f.addEngineMetadata(at, v[name])
		}
	case []any:
		for i, step := range itemSteps(v) {
			f.addEngineMetadata(append(slices.Clone(path), step), v[i])
		}
	}
}

// differences returns the paths, in order, at which the privileges of two manifests differ.
func differences(old, updated privileges) [][]string {
	all := maps.Clone(old.byPath)
	maps.Copy(all, updated.byPath)
	common, same := old.commonSecurityContext()
	var out [][]string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		before, after := old.byPath[key], updated.byPath[key]
		switch {
		case before != nil && after != nil && slices.Equal(slices.Sorted(slices.Values(before.values)), slices.Sorted(slices.Values(after.values))):
		case all[key].isSecurityContext && after == nil: // the container was removed
		case all[key].isSecurityContext && before == nil && same && !slices.ContainsFunc(after.values, func(v string) bool { return v != common }):
		default:
			out = append(out, all[key].path)
		}
	}
	return out
}

// commonSecurityContext returns the security context of all containers, if they all have the
// same one. Without containers it is null.
func (f privileges) commonSecurityContext() (common string, same bool) {
	common, first := "null", true
	for _, known := range f.byPath {
		if !known.isSecurityContext {
			continue
		}
		for _, v := range known.values {
			if !first && v != common {
				return "", false
			}
			common, first = v, false
		}
	}
	return common, true
}

// unnamedItem is the step to an item of a list that has no name.
const unnamedItem = "[]"

// isItemStep reports whether a step leads to an item of a list.
func isItemStep(step string) bool { return strings.HasPrefix(step, "[") }

// fieldStep returns the step to a field. It quotes a name that looks like the step to an item.
func fieldStep(name string) string {
	if isItemStep(name) || strings.HasPrefix(name, `"`) {
		return strconv.Quote(name)
	}
	return name
}

// itemSteps returns the steps to the items of a list: by name, if all names are set and unique.
func itemSteps(list []any) []string {
	out, seen := make([]string, len(list)), map[string]bool{}
	for i, item := range list {
		name, _ := mapOf(item)["name"].(string)
		if name == "" || seen[name] {
			return slices.Repeat([]string{unnamedItem}, len(list))
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
