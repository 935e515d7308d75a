package capsule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/dryrun/diff"
)

// A Difference is what one of two decisions does and the other does not, or does otherwise.
type Difference struct {
	// Object is what differs, as "Kind namespace/name", or "status" for that of the resource.
	Object string `json:"object"`
	// Before and After are the verbs of the writes, or "" where there is none.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Fields are those of the object that differ.
	Fields []diff.Field `json:"fields,omitempty"`
}

// Compare returns how two decisions differ, by object, the status last.
func Compare(before, after Decision) []Difference {
	was, is := writesOf(before), writesOf(after)
	names := maps.Clone(was)
	maps.Copy(names, is)
	var out []Difference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := was[name], is[name]
		d := Difference{Object: name, Before: string(a.Verb), After: string(b.Verb)}
		if a.Manifest != nil && b.Manifest != nil {
			d.Fields = fields(&unstructured.Unstructured{Object: a.Manifest}, &unstructured.Unstructured{Object: b.Manifest}, "")
		}
		if d.Before != d.After || len(d.Fields) > 0 {
			out = append(out, d)
		}
	}
	if changed := fields(reportOf(before), reportOf(after), reportField+"."); len(changed) > 0 {
		out = append(out, Difference{Object: statusName, Fields: changed})
	}
	return out
}

const (
	// statusName stands for the status of the resource among objects.
	statusName = "status"
	// reportField is where a status is compared: package diff leaves out the status of an object.
	reportField = "report"
)

// reportOf returns what a decision says of the resource as an object.
func reportOf(d Decision) *unstructured.Unstructured {
	values := maps.Clone(d.Status)
	if d.Failed != "" {
		if values == nil {
			values = map[string]any{}
		}
		values["failed"] = d.Failed
	}
	return &unstructured.Unstructured{Object: map[string]any{reportField: values}}
}

// fields returns the fields that differ between two states of an object, with paths without a prefix.
func fields(before, after *unstructured.Unstructured, prefix string) []diff.Field {
	var out []diff.Field
	for _, f := range (&diff.Mask{}).Fields(before, after) {
		f.Path = strings.TrimPrefix(f.Path, prefix)
		out = append(out, f)
	}
	return out
}

// writesOf returns the writes of a decision by object. Of several of one object the last counts.
func writesOf(d Decision) map[string]ObjectWrite {
	out := map[string]ObjectWrite{}
	for _, w := range d.Writes {
		out[w.Object] = w
	}
	return out
}

// Text returns the difference as lines for people.
func (d Difference) Text() string {
	var out strings.Builder
	switch {
	case d.Object == statusName:
		out.WriteString("status\n")
	case d.Before == d.After:
		fmt.Fprintf(&out, "%s %s, with other fields\n", d.After, d.Object)
	case d.Before == "":
		fmt.Fprintf(&out, "%s %s, and not before\n", d.After, d.Object)
	case d.After == "":
		fmt.Fprintf(&out, "no %s %s any more\n", d.Before, d.Object)
	default:
		fmt.Fprintf(&out, "%s %s, and %s before\n", d.After, d.Object, d.Before)
	}
	for _, f := range d.Fields {
		fmt.Fprintf(&out, "  %s\n", f)
	}
	return out.String()
}
