package ownership

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An UnreadableError says which part of an inventory cannot be read. To guess would
// lose objects: of a kind that nobody serves, for one, there are none.
type UnreadableError struct {
	// Path is where it is, such as [0].objects[1].kind.
	Path    string
	Problem string
}

// Error says what is wrong, and where.
func (e *UnreadableError) Error() string { return strings.TrimSpace(e.Path + " " + e.Problem) }

// Decode returns the inventory that some JSON values are. It errors with an
// UnreadableError, also for fields that only a later version can have written: what
// they mean is not known here, and the next write would lose them. The values are those
// of somebody who may have written anything: see Check.
func Decode(values []any) (Inventory, error) {
	if len(values) > maxComponents {
		return nil, &UnreadableError{"", fmt.Sprintf("has more than %d components", maxComponents)}
	}
	d := &decoder{}
	var out Inventory
	for i, v := range values {
		if g := d.group(fmt.Sprintf("[%d]", i), v); d.wrong == nil {
			out = append(out, g)
		}
	}
	if d.wrong != nil {
		return nil, d.wrong
	}
	if err := out.Check(); err != nil {
		return nil, err
	}
	return out, nil
}

// A decoder keeps the first problem that it meets.
type decoder struct {
	wrong *UnreadableError
}

func (d *decoder) refuse(path, problem string) {
	if d.wrong == nil {
		d.wrong = &UnreadableError{Path: path, Problem: problem}
	}
}

func (d *decoder) group(path string, v any) Group {
	m := d.object(path, v, "component", "dependsOn", "objects")
	g := Group{Component: d.text(path, m, "component")}
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
	return Entry{
		Object: d.text(path, m, "object"), APIVersion: d.text(path, m, "apiVersion"), Kind: d.text(path, m, "kind"), Name: d.text(path, m, "name"),
		Namespace: d.text(path, m, "namespace"), Digest: d.text(path, m, "digest"), UID: d.text(path, m, "uid"),
		ClusterScoped: d.truth(path, m, "clusterScoped"), Orphan: d.truth(path, m, "orphan"),
		Content: d.text(path, m, "content"), Ended: FinishState(d.text(path, m, "ended")), Last: d.text(path, m, "last"),
	}
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
		if wrongName(unknown) != "" {
			unknown = strconv.QuoteToASCII(unknown[:min(len(unknown), maxName)])
		}
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
