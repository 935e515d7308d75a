package why

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/fieldpath"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/program/syntax"
	"operetta.dev/engine/redact"
)

// show returns a value without what Secrets hold.
func (a *asking) show(value any, secret bool) any {
	switch v := value.(type) {
	case nil:
		return nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[a.mask.Text(k)] = a.show(e, secret)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = a.show(e, secret)
		}
		return out
	case string:
		if !secret {
			return a.mask.Text(v)
		}
		return redact.Mask
	}
	if secret {
		return redact.Mask
	}
	if text := fmt.Sprint(value); a.mask.Text(text) != text {
		return redact.Mask // a number that is a password
	}
	return value
}

// shown returns what is at the path of the question: of a whole Secret, only its content is secret.
func (a *asking) shown(value any) any {
	object, whole := value.(map[string]any)
	if !whole || len(a.path) > 0 || !a.secret {
		return a.show(value, a.secret)
	}
	out := map[string]any{}
	for k, v := range object {
		out[k] = a.show(v, slices.Contains(secretFields, k))
	}
	return out
}

// secretFields are the fields of a Secret that are secret.
var secretFields = syntax.SecretFields

// lines returns the lines of the files of a package, by the names of the files in messages.
func lines(p *program.Program) map[string][]string {
	out := map[string][]string{}
	for name, content := range p.Snapshot().Texts() {
		out[p.Snapshot().Display(name)] = strings.Split(content, "\n")
	}
	return out
}

// maxLine bounds the text of a line of the package.
const maxLine = 160

// fieldLabel matches the names of fields at the beginning of a line. A string is one only if it ends before its
// colon: a text in a list can have one, too.
var fieldLabel = regexp.MustCompile(`^(?:[\w#$]+|"[\w./-]+")[?!]?:(?: *(?:[\w#$]+|"[\w./-]+")[?!]?:)*`)

// line returns a line of the package with its text. Where content of a Secret is written, only the name of the field
// is shown.
func (a *asking) line(at fault.Position) Line {
	out := Line{File: at.File, Line: at.Line}
	all := a.lines[at.File]
	if at.Line < 1 || at.Line > len(all) {
		return out
	}
	text := strings.TrimSpace(all[at.Line-1])
	if a.secret {
		text = strings.TrimSpace(fieldLabel.FindString(text) + " " + redact.Mask) // a literal may be raw, a number, or in a comment
	}
	text = a.mask.Text(text)
	if runes := []rune(text); len(runes) > maxLine {
		text = string(runes[:maxLine]) + "…"
	}
	out.Text = text
	return out
}

// source returns a source as it is shown.
func (a *asking) source(s program.Source) Source {
	out := Source{Path: redact.Printable(syntax.Reference{Path: s.Path}.String()), Object: redact.Printable(s.Object), By: s.By, From: Unset}
	out.Path = strings.ReplaceAll(out.Path, `."*"`, "[*]")
	out.Value = a.show(s.Value, s.Secret)
	switch {
	case s.Given && s.Path[0] == "cr" && object.Equal(s.Value, s.Default) && !a.applied(s.Path):
		out.From = Default
	case s.Given:
		out.From = Given
	case s.Value != nil && (s.Path[0] == "cr" || s.Path[0] == "config"):
		out.From = Default
	}
	for _, at := range s.Schema {
		out.Lines = append(out.Lines, a.line(at))
	}
	return out
}

// applied reports whether somebody has set a field of the custom resource to what is also its default. Of a
// resource that was read from a cluster, the API server may have: only what was applied tells.
func (a *asking) applied(path []string) bool {
	cr := &unstructured.Unstructured{Object: a.in.CR}
	if cr.GetResourceVersion() == "" {
		return true
	}
	var last map[string]any
	if json.Unmarshal([]byte(cr.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &last) == nil {
		if _, found, err := unstructured.NestedFieldNoCopy(last, path[1:]...); found && err == nil {
			return true
		}
	}
	parts := make([]fieldpath.Part, len(path)-1)
	for i, name := range path[1:] {
		parts[i] = fieldpath.Part{Field: name}
	}
	return slices.ContainsFunc(owners(cr, parts), func(o Owner) bool { return o.Operation == string(metav1.ManagedFieldsOperationApply) })
}
