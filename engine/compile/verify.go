package compile

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/program"
)

// CUE can take a hole for what it is unified with where a translation does not see it, such as in the
// condition of a comprehension. So a template has to give what CUE does for sessions with other values, too.

// verify errors if a template does not give what CUE does, for the session and for others of its
// shape.
func (u *unit) verify(t *Template, h *holes) error {
	got, err := t.Eval(u.view)
	u.fellBack = u.fellBack || err != nil
	if err != nil || !reflect.DeepEqual(got, u.want) {
		return untranslatedf("", "the template gives another rollout (%v)", err)
	}
	free := u.free(t, h)
	for _, value := range []func(i int, was any) any{distinct, alike} {
		s := u.session
		for i, path := range free {
			s = withValue(s, path, func(was any) any { return value(i, was) })
		}
		if !u.agrees(t, s) {
			return untranslatedf("", "the template gives another rollout for other values")
		}
	}
	return nil
}

// free returns the holes that no guard refers to.
func (u *unit) free(t *Template, h *holes) [][]string {
	guarded := map[string]bool{}
	for _, g := range t.guardPlaces() {
		for _, path := range (*g).References() {
			guarded[strings.Join(path, separator)] = true
		}
	}
	var out [][]string
	for key, path := range h.paths {
		if !guarded[key] {
			out = append(out, path)
		}
	}
	slices.SortFunc(out, slices.Compare)
	return out
}

// agrees reports whether a template gives what CUE does for a session, or has no answer.
func (u *unit) agrees(t *Template, s program.Session) bool {
	got, err := t.Eval(u.program.Views().Of(s).Values())
	if err != nil {
		return true
	}
	want, err := u.program.Evaluate(s)
	return err == nil && reflect.DeepEqual(got, want)
}

// distinct returns a value that is unlike all others, and alike one that is like all others of its
// kind.
func distinct(i int, was any) any {
	if _, ok := was.(string); ok {
		return "zq" + strconv.Itoa(i)
	}
	return int64(1000 + i)
}

func alike(_ int, was any) any {
	if _, ok := was.(string); ok {
		return "zq"
	}
	return int64(1000)
}

// withValue returns a session with another value at a path of its view.
func withValue(s program.Session, path []string, value func(was any) any) program.Session {
	switch path[0] {
	case "cr":
		s.CR, _ = changed(s.CR, path[1:], value).(map[string]any)
	case "live":
		live := maps.Clone(s.Live)
		live[path[1]] = maps.Clone(live[path[1]])
		live[path[1]][path[2]], _ = changed(live[path[1]][path[2]], path[3:], value).(map[string]any)
		s.Live = live
	case "inputs":
		inputs := maps.Clone(s.Inputs)
		found := inputs[path[1]]
		found.Objects = slices.Clone(found.Objects)
		for i, o := range found.Objects {
			rest := path[3:]
			if path[2] == "objects" {
				if name, _, _ := unstructured.NestedString(o, "metadata", "name"); name != path[3] {
					continue
				}
				rest = path[4:]
			}
			found.Objects[i], _ = changed(o, rest, value).(map[string]any)
		}
		inputs[path[1]] = found
		s.Inputs = inputs
	}
	return s
}

// changed returns data with another value at a path, if there is one that is not the kind of an
// object.
func changed(data any, path []string, value func(was any) any) any {
	switch v := data.(type) {
	case map[string]any:
		if len(path) == 0 || v[path[0]] == nil || len(path) == 1 && (path[0] == "kind" || path[0] == "apiVersion") {
			return data
		}
		out := maps.Clone(v)
		out[path[0]] = changed(v[path[0]], path[1:], value)
		return out
	case []any:
		if len(path) == 0 {
			return data
		}
		i, err := strconv.Atoi(path[0])
		if err != nil || i >= len(v) {
			return data
		}
		out := slices.Clone(v)
		out[i] = changed(v[i], path[1:], value)
		return out
	}
	if len(path) > 0 {
		return data
	}
	return value(data)
}
