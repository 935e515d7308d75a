package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An UnreadableError says which part of an inventory cannot be read. To guess would
// lose objects: of a kind that nobody serves, for one, there are none.
type UnreadableError struct {
	// Path is where it is, such as [0].objects[1].kind.
	Path    string
	Problem string
}

// Error says what is wrong, and where.
func (e *UnreadableError) Error() string { return e.Path + " " + e.Problem }

// Decode returns the inventory that some JSON values are. It errors with an
// UnreadableError, also for fields that only a later version can have written: what
// they mean is not known here, and the next write would lose them.
func Decode(values []any) (Inventory, error) {
	d := &decoder{components: map[string]bool{}}
	var out Inventory
	for i, v := range values {
		if g := d.group(fmt.Sprintf("[%d]", i), v); d.wrong == nil {
			out = append(out, g)
		}
	}
	if d.wrong != nil {
		return nil, d.wrong
	}
	return out, nil
}

// A decoder keeps the first problem that it meets.
type decoder struct {
	wrong      *UnreadableError
	components map[string]bool
}

func (d *decoder) refuse(path, problem string) {
	if d.wrong == nil {
		d.wrong = &UnreadableError{Path: path, Problem: problem}
	}
}

func (d *decoder) group(path string, v any) Group {
	m := d.object(path, v, "component", "dependsOn", "objects")
	g := Group{Component: d.required(path, m, "component")}
	if d.components[g.Component] {
		d.refuse(path+".component", fmt.Sprintf("%q is there twice", g.Component))
	}
	d.components[g.Component] = true
	for i, name := range d.list(path, m, "dependsOn") {
		s, ok := name.(string)
		if !ok {
			d.refuse(fmt.Sprintf("%s.dependsOn[%d]", path, i), "is not a text")
		}
		g.DependsOn = append(g.DependsOn, s)
	}
	for i, o := range d.list(path, m, "objects") {
		g.Objects = append(g.Objects, d.entry(fmt.Sprintf("%s.objects[%d]", path, i), o))
	}
	return g
}

func (d *decoder) entry(path string, v any) Entry {
	m := d.object(path, v, "object", "apiVersion", "kind", "namespace", "name", "clusterScoped", "digest", "uid", "orphan", "content", "ended", "last")
	e := Entry{
		Object: d.required(path, m, "object"), APIVersion: d.required(path, m, "apiVersion"), Kind: d.required(path, m, "kind"), Name: d.required(path, m, "name"),
		Namespace: d.text(path, m, "namespace"), Digest: d.text(path, m, "digest"), UID: d.text(path, m, "uid"),
		ClusterScoped: d.truth(path, m, "clusterScoped"), Orphan: d.truth(path, m, "orphan"),
		Content: d.text(path, m, "content"), Ended: Ending(d.text(path, m, "ended")), Last: d.text(path, m, "last"),
	}
	switch e.Ended {
	case NotEnded, Succeeded, Failed:
	default:
		d.refuse(path+".ended", fmt.Sprintf("%q is of a later version", e.Ended))
	}
	if e.Last != "" && !isObject(e.Last) {
		d.refuse(path+".last", "is not the JSON of an object")
	}
	if gv, err := schema.ParseGroupVersion(e.APIVersion); err != nil || gv.Version == "" {
		d.refuse(path+".apiVersion", fmt.Sprintf("%q is no version of an API", e.APIVersion))
	}
	if e.ClusterScoped && e.Namespace != "" {
		d.refuse(path+".namespace", "is set, and so is clusterScoped")
	}
	return e
}

// object returns a value that has to be an object with no other fields than some.
func (d *decoder) object(path string, v any, fields ...string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		d.refuse(path, "is not an object")
	}
	unknown := ""
	for name := range m {
		if !slices.Contains(fields, name) && (unknown == "" || name < unknown) {
			unknown = name
		}
	}
	if unknown != "" {
		d.refuse(path+"."+unknown, "is a field of a later version")
	}
	return m
}

func (d *decoder) list(path string, m map[string]any, name string) []any {
	v, set := m[name]
	l, ok := v.([]any)
	if set && !ok {
		d.refuse(path+"."+name, "is not a list")
	}
	return l
}

func (d *decoder) required(path string, m map[string]any, name string) string {
	s := d.text(path, m, name)
	if s == "" {
		d.refuse(path+"."+name, "is missing")
	}
	return s
}

func (d *decoder) text(path string, m map[string]any, name string) string {
	v, set := m[name]
	s, ok := v.(string)
	if set && !ok {
		d.refuse(path+"."+name, "is not a text")
	}
	return s
}

func (d *decoder) truth(path string, m map[string]any, name string) bool {
	v, set := m[name]
	b, ok := v.(bool)
	if set && !ok {
		d.refuse(path+"."+name, "is neither true nor false")
	}
	return b
}
