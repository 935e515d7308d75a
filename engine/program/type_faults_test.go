package program_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// typeFaults returns what the complete types find in a package, beside what is found
// without them.
func typeFaults(t *testing.T, files fstest.MapFS) (*program.Program, *program.Kinds, fault.Faults) {
	t.Helper()
	s, err := source.Loader{}.Module("shop", "", "shop", files)
	if err != nil {
		t.Fatal(err)
	}
	p, faults, err := program.LoadFaulty(s)
	if err != nil {
		t.Fatal(err)
	}
	complete, err := s.Complete()
	if err != nil {
		t.Fatal(err)
	}
	kinds := program.NewKinds(complete)
	return p, kinds, append(faults, p.TypeFaults(kinds, nil)...)
}

// label is how a manifest of schemas/k8s/test begins.
var label = regexp.MustCompile(`(?m)^manifests: "?([a-z][a-z0-9 ]*)"?: `)

// accepted returns the manifests that the types have to accept, as data.
func accepted(t *testing.T) []program.Object {
	t.Helper()
	files := fstest.MapFS{"shop/shop.cue": {Data: []byte(head)}}
	for _, name := range []string{"workloads.cue", "others.cue"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "schemas", "k8s", "test", name))
		if err != nil {
			t.Fatal(err)
		}
		own, _, _ := strings.Cut(string(text), "manifests: \"list\"") // it is no object
		own = label.ReplaceAllStringFunc(strings.Replace(own, "package test", "package shop", 1), func(l string) string {
			return "components: all: objects: \"" + strings.ReplaceAll(label.FindStringSubmatch(l)[1], " ", "-") + "\": "
		})
		files["shop/"+name] = &fstest.MapFile{Data: []byte(own)}
	}
	p, _, faults := typeFaults(t, files)
	if len(faults) > 0 {
		t.Fatalf("faults of what is right: %v", faults)
	}
	return p.Template()[0].Objects
}

// TestTypeFaultsAgreeWithCUE misspells every field and changes the type of every value of
// the manifests that the types accept, one at a time, and compares with what CUE says of
// the same data.
func TestTypeFaultsAgreeWithCUE(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	objects := accepted(t)
	if len(objects) < 10 {
		t.Fatalf("only %d manifests", len(objects))
	}
	for _, o := range objects {
		if o.Manifest == nil {
			continue // one without a name, which no contract allows
		}
		t.Run(o.Name, func(t *testing.T) {
			t.Parallel()
			compareMutations(t, o)
		})
	}
}

// maxMutations bounds how many mutations of one manifest are looked at.
const maxMutations = 40

// compareMutations looks at every mutation of one manifest.
func compareMutations(t *testing.T, o program.Object) {
	t.Helper()
	var text strings.Builder
	group, version, found := strings.Cut(o.Identity.GroupVersion().String(), "/")
	if !found {
		group, version = "core", o.Identity.GroupVersion().String()
	}
	group, _, _ = strings.Cut(group, ".")
	text.WriteString(strings.Replace(head, "import ", fmt.Sprintf("import types \"operetta.dev/schemas/k8s/%s/%s\"\nimport ", group, version), 1))
	all := mutations(o.Manifest)
	if every := 1 + len(all)/maxMutations; every > 1 {
		var some []map[string]any
		for i := 0; i < len(all); i += every {
			some = append(some, all[i])
		}
		all = some
	}
	for i, m := range all {
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "components: all: objects: m%d: types.#%s & %s\n", i, o.Identity.Kind, data)
	}
	_, kinds, faults := typeFaults(t, fstest.MapFS{"shop/shop.cue": {Data: []byte(text.String())}})
	schema, ok := kinds.Of(o.Identity.GroupVersionKind)
	if !ok {
		t.Fatalf("there is no type of %v", o.Identity)
	}
	refused := 0
	for i, m := range all {
		prefix := fmt.Sprintf("components.all.objects.m%d.", i)
		got := map[string]bool{}
		unset := false
		for _, f := range faults {
			if path, ok := strings.CutPrefix(f.Path, prefix); ok {
				got[path] = true
				unset = unset || strings.Contains(f.Message, "required")
			}
		}
		want := cuePaths(schema.FillPath(cue.Path{}, m).Validate(cue.Concrete(true)))
		lost := slices.DeleteFunc(slices.Clone(want), func(path string) bool { return got[path] })
		// CUE does not say what a struct lacks that has an unknown field.
		if len(lost) > 0 || len(got) > len(want) && !unset {
			t.Errorf("%s: of %v\nCUE has faults at %v\nand we at        %v", o.Name, m, want, slices.Sorted(maps.Keys(got)))
		}
		refused += min(len(want), 1)
	}
	t.Logf("%d of %d mutations refused", refused, len(all))
}

// cuePaths returns where the errors of a value are, each once.
func cuePaths(err error) []string {
	var out []string
	for _, e := range errors.Errors(err) {
		var path []cue.Selector
		for _, label := range e.Path() {
			if unquoted, err := strconv.Unquote(label); err == nil {
				label = unquoted
			}
			sel := cue.Str(label)
			if n, err := strconv.Atoi(label); err == nil {
				sel = cue.Index(n)
			}
			path = append(path, sel)
		}
		if len(path) > 0 && strings.HasPrefix(e.Path()[0], "#") {
			path = path[1:]
		}
		out = append(out, cue.MakePath(path...).String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// mutations returns copies of a manifest with one field misspelled, or of another type.
func mutations(manifest map[string]any) []map[string]any {
	var out []map[string]any
	add := func(change func(root map[string]any)) {
		changed := runtime.DeepCopyJSON(manifest)
		change(changed)
		out = append(out, changed)
	}
	for _, at := range pathsIn(manifest, nil) {
		if slices.Contains([]string{"apiVersion", "kind", "metadata"}, at[0].(string)) && len(at) < 3 {
			continue // what tells which type it is
		}
		last := at[len(at)-1]
		if name, ok := last.(string); ok {
			add(func(root map[string]any) {
				in := lookup(root, at[:len(at)-1]).(map[string]any)
				in[name+"x"] = in[name]
				delete(in, name)
			})
		}
		add(func(root map[string]any) {
			switch in := lookup(root, at[:len(at)-1]).(type) {
			case map[string]any:
				in[last.(string)] = another(in[last.(string)])
			case []any:
				in[last.(int)] = another(in[last.(int)])
			}
		})
	}
	return out
}

// another returns a value of another type.
func another(v any) any {
	if _, ok := v.(bool); ok {
		return "text"
	}
	return true
}

// pathsIn returns the paths of all fields and elements of some data.
func pathsIn(v any, at []any) [][]any {
	var out [][]any
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			below := append(slices.Clip(at), k)
			out = append(append(out, below), pathsIn(v[k], below)...)
		}
	case []any:
		for i, e := range v {
			below := append(slices.Clip(at), i)
			out = append(append(out, below), pathsIn(e, below)...)
		}
	}
	return out
}

// lookup returns what is at a path of some data.
func lookup(v any, at []any) any {
	for _, k := range at {
		switch in := v.(type) {
		case map[string]any:
			v = in[k.(string)]
		case []any:
			v = in[k.(int)]
		}
	}
	return v
}

func TestAKindThatHasNoTypeIsNone(t *testing.T) {
	t.Parallel()
	complete, err := inline.Snapshot(t, head).Complete()
	if err != nil {
		t.Fatal(err)
	}
	kinds := program.NewKinds(complete)
	rows := []struct {
		reason string
		kind   schema.GroupVersionKind
		want   bool
	}{
		{"one of Kubernetes", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, true},
		{"an unknown kind of a known group", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deploy"}, false},
		{"a kind made of what a sample has for a text, which is no identifier of CUE", schema.GroupVersionKind{Version: "v1", Kind: "sample-spec-kind"}, false},
		{"a kind with quotes", schema.GroupVersionKind{Version: "v1", Kind: `"\(x)`}, false},
		{"no kind", schema.GroupVersionKind{Version: "v1"}, false},
		{"a group and version that are no part of an import path", schema.GroupVersionKind{Group: "../ \x00\"", Version: "::@", Kind: "Pod"}, false},
	}
	for _, row := range rows {
		if _, ok := kinds.Of(row.kind); ok != row.want {
			t.Errorf("%s: there is a type for %v: %v, want %v", row.reason, row.kind, ok, row.want)
		}
	}
}
