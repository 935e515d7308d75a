package eval

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
	"operetta.dev/test/internal/markdown"
	"operetta.dev/test/machine"
)

// variants is how many resources are made of each one that the schema of a package gives,
// besides that one. OPERETTA_VARIANTS asks for some, as a sweep does: each costs seconds.
func variants(t *testing.T) int {
	t.Helper()
	text := os.Getenv("OPERETTA_VARIANTS")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// maxSteps bounds how many states of one resource are compared.
const maxSteps = 6

// TestRenderAndDryRunAndReconcileAgree rolls every package of the repository out in memory,
// for generated resources, and asks at each state that the cluster comes to: what render
// says of what kubectl would print, what a dry run would decide, and what the next
// reconcile does. They have to say the same of every component, and of every object the
// same bytes.
func TestRenderAndDryRunAndReconcileAgree(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	n := variants(t)
	for name, p := range everyPackage(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, 2))
			for i, s := range vet.Samples(p) {
				compareWays(t, fmt.Sprintf("resource %d", i), p, s.CR)
				for v := range n {
					cr := runtime.DeepCopyJSON(s.CR)
					if spec, ok := cr["spec"].(map[string]any); ok {
						vary(random, spec)
					}
					compareWays(t, fmt.Sprintf("resource %d, variant %d", i, v), p, cr)
				}
			}
		})
	}
}

// everyPackage returns the packages of the repository that can be loaded, by folder: those
// of the operators, of the end-to-end tests, and in the scripts of the command.
func everyPackage(t *testing.T) map[string]*program.Program {
	t.Helper()
	out := map[string]*program.Program{}
	dirs, err := source.Expand([]string{"../../cue/...", "../e2e/packages/...", "../e2e/testdata/..."})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		s, err := source.Loader{}.Folder(dir)
		if err != nil {
			t.Fatal(err)
		}
		p, err := program.Load(s)
		if err != nil {
			t.Fatal(err)
		}
		out[dir] = p
	}
	before := len(out)
	scripts, err := os.ReadDir("../../cmd/operetta/testdata/script")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		maps.Copy(out, packagesIn(t, "../../cmd/operetta/testdata/script/"+script.Name()))
	}
	if len(out)-before < 10 {
		t.Errorf("only %d packages of scripts can be loaded", len(out)-before)
	}
	before = len(out)
	pages, err := markdown.All("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		maps.Copy(out, packagesOf(t, page))
	}
	if len(out)-before < 6 {
		t.Errorf("only %d packages of the documents can be loaded", len(out)-before)
	}
	return out
}

// packagesOf returns the packages of a document as they are after each block that changes one.
func packagesOf(t *testing.T, page markdown.Document) map[string]*program.Program {
	t.Helper()
	versions, err := page.Versions()
	if err != nil {
		t.Fatal(err)
	}
	out, seen := map[string]*program.Program{}, map[string]bool{}
	for i, version := range versions {
		files := fstest.MapFS{}
		for name, text := range version {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		for dir, p := range packagesAmong(files) {
			if digest := p.Digest(); !seen[digest] {
				seen[digest] = true
				out[fmt.Sprintf("%s/%s, version %d", page.Name, dir, i+1)] = p
			}
		}
	}
	return out
}

// packagesIn returns the packages of a script.
func packagesIn(t *testing.T, file string) map[string]*program.Program {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	out := map[string]*program.Program{}
	for dir, p := range packagesAmong(files) {
		out[strings.TrimPrefix(file, "../../")+"/"+dir] = p
	}
	return out
}

// packagesAmong returns the packages that can be loaded, by folder; others are there to be refused.
func packagesAmong(all fstest.MapFS) map[string]*program.Program {
	files, dirs := fstest.MapFS{}, map[string]bool{}
	for name, f := range all {
		if dir, _, ok := strings.Cut(name, "/"); ok && strings.HasSuffix(name, ".cue") && strings.Count(name, "/") == 1 {
			files[name], dirs[dir] = f, true
		}
	}
	out := map[string]*program.Program{}
	for dir := range dirs {
		s, err := source.New(files, dir, nil)
		if err != nil {
			continue
		}
		p, err := program.Load(s)
		if err != nil {
			continue
		}
		if faults, _, _ := vet.Examine(p, nil).All(); len(faults) == 0 {
			out[dir] = p
		}
	}
	return out
}

// vary changes some values of a spec to others of their type.
func vary(random *rand.Rand, spec map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		switch value := spec[name].(type) {
		case map[string]any:
			vary(random, value)
		case bool:
			spec[name] = random.IntN(2) == 0
		case int64:
			spec[name] = value + random.Int64N(3)
		case string:
			if random.IntN(4) == 0 {
				spec[name] = value + "x"
			}
		}
	}
}

// compareWays rolls a resource out and compares the ways at each state.
func compareWays(t *testing.T, what string, p *program.Program, cr map[string]any) {
	t.Helper()
	w := dryrun.New(types.NamespacedName{}, p)
	resource := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(cr)}
	if p.Meta().ClusterScoped {
		resource.SetNamespace("")
	}
	resource.SetUID("")
	put, err := w.Put(resource)
	if err != nil {
		t.Fatal(err)
	}
	ref := cluster.RefOf(put)
	states := [][]*unstructured.Unstructured{w.Cluster.Objects()}
	_ = w.Run(t.Context(), func(dryrun.Step) { // what never comes to rest has states, too
		if len(states) < maxSteps {
			states = append(states, w.Cluster.Objects())
		}
	})
	states = append(states, w.Cluster.Objects())
	for i, state := range states {
		compareAt(t, fmt.Sprintf("%s, state %d", what, i), p, ref, state)
	}
}

// compareAt compares what the ways say at one state.
func compareAt(t *testing.T, what string, p *program.Program, ref cluster.Ref, state []*unstructured.Unstructured) {
	t.Helper()
	w := dryrun.New(types.NamespacedName{}, p)
	for _, u := range state {
		if _, err := w.Put(u); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.ContainsFunc(state, func(u *unstructured.Unstructured) bool { return cluster.RefOf(u) == ref }) {
		return // it is gone
	}
	rendered := renderAt(t, what, p, ref, state)
	decided, err := w.Preview(t.Context(), ref)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(texts(decided.Components), texts(rendered.Components)); diff != "" && len(rendered.Invalid) == 0 && decided.Fault.IsZero() {
		t.Errorf("%s: render says something else than the dry run (-dry run +render):\n%s", what, diff)
	}
	compareStep(t, what, w, ref, rendered, func(written []cluster.ObjectChange) render.Output {
		return renderAt(t, what, p, ref, after(state, written))
	})
}

// renderAt returns what render says of a resource at a state, in which it exists.
func renderAt(t *testing.T, what string, p *program.Program, ref cluster.Ref, state []*unstructured.Unstructured) render.Output {
	t.Helper()
	in := render.Input{}
	for _, u := range state {
		if cluster.RefOf(u) == ref {
			in.CR = u.Object
			continue
		}
		in.Manifests = append(in.Manifests, u.Object)
	}
	out, err := render.Render(t.Context(), p, in)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return out
}

// after returns a state after changes.
func after(state []*unstructured.Unstructured, changes []cluster.ObjectChange) []*unstructured.Unstructured {
	for _, c := range changes {
		state = slices.DeleteFunc(slices.Clone(state), func(u *unstructured.Unstructured) bool { return cluster.RefOf(u).Identity() == c.Ref.Identity() })
		if c.Verb != cluster.Deleted {
			state = append(state, c.Object)
		}
	}
	return state
}

// compareStep compares what render says with what the next reconcile does: with the status,
// if it writes nothing else, and otherwise with what it writes. Another render says what is to be
// written once some has been.
func compareStep(t *testing.T, what string, w *dryrun.World, ref cluster.Ref, rendered render.Output, again func(written []cluster.ObjectChange) render.Output) {
	t.Helper()
	var first *dryrun.Step
	_ = w.Run(t.Context(), func(s dryrun.Step) {
		if first == nil && s.Resource.Identity() == ref.Identity() {
			first = &s
		}
	})
	var components []any
	switch {
	case first == nil:
		components, _, _ = unstructured.NestedSlice(w.Get(ref).Object, "status", "components")
	case len(first.Changes) == 0:
		components, _ = first.Status["components"].([]any)
	default:
		compareWrites(t, what, first.Changes, rendered, again)
		return
	}
	want := map[string]string{}
	for _, c := range components {
		m, _ := c.(map[string]any)
		want[fmt.Sprint(m["name"])] = shown(fmt.Sprint(m["state"]), fmt.Sprint(m["reason"]), text(m["message"]))
	}
	got := map[string]string{}
	for _, c := range rendered.Components {
		if c.State != "" {
			got[c.Name] = shown(string(c.State), string(c.Reason), c.Message)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" && (len(want) > 0 || len(got) > 0) {
		t.Errorf("%s: render says something else than the status (-status +render):\n%s", what, diff)
	}
}

// compareWrites compares what a reconcile writes with what render says of it: of each component once those
// before it are written, as it may refer to them.
func compareWrites(t *testing.T, what string, changes []cluster.ObjectChange, rendered render.Output, again func(written []cluster.ObjectChange) render.Output) {
	t.Helper()
	component := -1
	for i, change := range changes {
		if change.Verb == cluster.Deleted || change.Object.GetDeletionTimestamp() != nil {
			continue // what is pruned is not rendered
		}
		at, o := renderedAs(rendered, change.Ref)
		if i > 0 && at != component {
			rendered = again(changes[:i])
			at, o = renderedAs(rendered, change.Ref)
		}
		if at < 0 {
			if !strings.Contains(what, "hook") && len(rendered.Hooks) == 0 {
				t.Errorf("%s: %s is written, and render does not have it", what, change.Ref)
			}
			return
		}
		component = at
		if got := change.Object.GetAnnotations()[ownership.AppliedMark]; got != o.Digest {
			t.Errorf("%s: %s is applied with the digest %s, and render has %s", what, change.Ref, got, o.Digest)
		}
	}
}

// renderedAs returns the index of the component of an object, and what render says of it, or -1.
func renderedAs(rendered render.Output, ref cluster.Ref) (int, rollout.ObjectPreview) {
	for i, c := range rendered.Components {
		for _, o := range c.Objects {
			if o.Ref().Identity() == ref.Identity() {
				return i, o
			}
		}
	}
	return -1, rollout.ObjectPreview{}
}

// texts returns what is decided about each component, with its objects byte for byte.
func texts(components []rollout.ComponentPreview) map[string][]string {
	out := map[string][]string{}
	for _, c := range components {
		all := []string{shown(string(c.State), string(c.Reason), c.Message)}
		for _, o := range c.Objects {
			manifest, err := json.Marshal(o.Manifest.Object)
			if err != nil {
				all = append(all, err.Error())
			}
			all = append(all, string(o.Action.Verb)+" "+string(manifest))
		}
		out[c.Name] = all
	}
	return out
}

// shown is what is said of a component. A status has room for so much of a message.
func shown(state, reason, message string) string {
	return state + " " + reason + " " + message[:min(len(message), 200)]
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
