package why_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/explain"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/why"
	"operetta.dev/test/inline"
)

// header begins every package of these tests; its lines are counted in positions.
const header = `package site
import "operetta.dev/schemas/operator"
operator.#Controller
group: "example.com", kind: "Site"
versions: v1: spec: #Spec
#Spec: {size: *1 | int, mode: "a" | *"b", note?: string, names?: [...string]}
cr: spec: #Spec
live: _
inputs: _
`

func site(spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": "example.com/v1", "kind": "Site", "metadata": map[string]any{"name": "a"}, "spec": spec}
}

// ask asks about the field of the ConfigMap that a package has as cm.
func ask(t *testing.T, p *program.Program, in render.Input, path string) (why.Answer, error) {
	t.Helper()
	if in.CR == nil {
		in.CR = site(map[string]any{})
	}
	return why.Ask(t.Context(), p, in, why.Question{Object: "c/cm", Path: path})
}

// component is a component with a ConfigMap that has some data.
func component(data string) string {
	return `components: c: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "m", data: ` + data + "}\n"
}

// TestAnAnswerHasTheLinesAndTheSourcesOfAValue asks about data.k.
func TestAnAnswerHasTheLinesAndTheSourcesOfAValue(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason  string
		body    string
		lines   []int
		sources []string
	}{
		"a literal": {"nothing is behind it", component(`k: "x"`), []int{10}, nil},
		"the branch that is taken": {"the other one has no part in the value",
			"if cr.spec.mode == \"a\" {" + component(`k: cr.spec.note`) + "}\n" + component("{\nif cr.spec.mode == \"b\" {k: \"b\"}\n}"), []int{13}, nil},
		"a hidden field": {"it is followed to the spec", component(`k: _n`) + "_n: \"\\(cr.spec.size)\"\n", []int{10, 11}, []string{"cr.spec.size"}},
		"a let clause":   {"it is no field, and is followed", component("{\nlet n = cr.spec.mode\nk: n\n}"), []int{12}, []string{"cr.spec.mode"}},
		"a template": {"the parameters of a definition are where it is used",
			component(`k: (#T & {#in: cr.spec.mode}).out`) + "#T: {#in: string, out: \"x\" + #in}\n", []int{10, 11}, []string{"cr.spec.mode"}},
		"the output of another component": {"it is followed to the live object",
			component(`k: components.d.outputs.o`) + "components: d: {objects: cm: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"d\"}\noutputs: o: live.d.cm.metadata.uid}\n",
			[]int{10, 12}, []string{"live.d.cm.metadata.uid"}},
		"a loop": {"each element of the list is part of it", component(`k: strings.Join([for n in cr.spec.names {n}], ",")`), []int{10}, []string{"cr.spec.names[*]"}},
		"a name that refers to itself by way of another": {"following ends", component(`k: _a`) + "_a: string | *_b\n_b: string | *_a\n_a: \"x\"\n", []int{10, 11, 12, 13}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			head := header
			if strings.Contains(row.body, "strings.") {
				head = strings.Replace(header, "package site\n", "package site\nimport \"strings\"\n", 1)
			}
			p := inline.Program(t, head+row.body)
			a, err := ask(t, p, render.Input{CR: site(map[string]any{"names": []any{"x", "y"}})}, ".data.k")
			if err != nil {
				t.Fatalf("%s: %v", row.reason, err)
			}
			var lines []int
			for _, l := range a.Lines {
				lines = append(lines, l.Line-strings.Count(head, "\n")+strings.Count(header, "\n"))
			}
			var sources []string
			for _, s := range a.Sources {
				sources = append(sources, s.Path)
			}
			if diff := cmp.Diff(row.lines, lines); diff != "" {
				t.Errorf("lines (%s) (-want +got):\n%s", row.reason, diff)
			}
			if diff := cmp.Diff(row.sources, sources); diff != "" {
				t.Errorf("sources (%s) (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

// TestTheSourceOfAComponentOfALoopIsTheFieldOfEachElement has a component for each entry of a map.
func TestTheSourceOfAComponentOfALoopIsTheFieldOfEachElement(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, `package site
import "operetta.dev/schemas/operator"
operator.#Controller
group: "example.com", kind: "Site"
versions: v1: spec: #Spec
cr: spec: #Spec
#Spec: routes: [string]: #Route
#Route: {
	port: int | *80
	tags: [...string]
}
for n, r in cr.spec.routes {
	components: (n): objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: n, data: {port: "\(r.port)", tags: "\(len(r.tags))"}}
}
`)
	cr := site(map[string]any{"routes": map[string]any{"a": map[string]any{"port": int64(81)}, "b": map[string]any{"tags": []any{"x"}}}})
	a, err := why.Ask(t.Context(), p, render.Input{CR: cr}, why.Question{Object: "a/cm", Path: ".data.port"})
	if err != nil {
		t.Fatal(err)
	}
	want := []why.Source{{Path: "cr.spec.routes[*].port", From: why.Given, Value: map[string]any{"a": int64(81), "b": int64(80)}}}
	var got []why.Source
	for _, s := range a.Sources {
		if len(s.Lines) == 0 || s.Lines[0].Line != 9 {
			t.Errorf("%s is declared at %v, want line 9", s.Path, s.Lines)
		}
		s.Lines = nil
		got = append(got, s)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASourceIsGivenOrTheDefaultOrNotSet(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, header+component(`k: "\(cr.spec.size)", {if cr.spec.note != _|_ {n: cr.spec.note}}`))
	fromServer := func(size int64, managed ...any) map[string]any {
		cr := site(map[string]any{"size": size})
		cr["metadata"] = map[string]any{"name": "a", "resourceVersion": "1", "uid": "u", "managedFields": managed}
		return cr
	}
	entry := map[string]any{"manager": "m", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
		"fieldsV1": map[string]any{"f:spec": map[string]any{"f:size": map[string]any{}}}}
	for name, row := range map[string]struct {
		reason string
		cr     map[string]any
		want   why.Origin
	}{
		"not in a file":                       {"the schema has a default", site(map[string]any{}), why.Default},
		"in a file":                           {"somebody wrote it", site(map[string]any{"size": int64(1)}), why.Given},
		"another value on a server":           {"an API server sets only the default", fromServer(2), why.Given},
		"the default on a server":             {"the API server may have set it", fromServer(1), why.Default},
		"the default on a server by somebody": {"it was applied", fromServer(1, entry), why.Given},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := ask(t, p, render.Input{CR: row.cr}, ".data.k")
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Sources) != 1 || a.Sources[0].From != row.want || len(a.Sources[0].Lines) != 1 || a.Sources[0].Lines[0].Line != 6 {
				t.Errorf("it is %+v, not %s: %s", a.Sources, row.want, row.reason)
			}
		})
	}
}

// live returns the Deployment of a test with the fields that managers own.
func live(containers []any, managers map[string]map[string]any) map[string]any {
	var entries []any
	for _, name := range []string{"operetta", "other"} {
		if fields, ok := managers[name]; ok {
			entries = append(entries, map[string]any{"manager": name, "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "time": "2026-11-23T10:00:00Z", "fieldsV1": fields})
		}
	}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "d", "namespace": "default", "uid": "u", "resourceVersion": "3", "managedFields": entries},
		"spec":     map[string]any{"replicas": int64(2), "template": map[string]any{"spec": map[string]any{"containers": containers}}},
	}
}

const deployment = `components: c: objects: d: {apiVersion: "apps/v1", kind: "Deployment", metadata: name: "d", spec: {
	replicas: cr.spec.size
	selector: matchLabels: a: "b"
	template: {metadata: labels: a: "b", spec: containers: [{name: "one", image: "i"}, {name: "two", image: "j"}]}
}}
`

func TestTheOwnersOfAFieldAreThoseOfTheSameItemInTheCluster(t *testing.T) {
	t.Parallel()
	container := func(name, image string) map[string]any { return map[string]any{"name": name, "image": image} }
	in := func(fields map[string]any) map[string]any {
		return map[string]any{"f:spec": map[string]any{"f:template": map[string]any{"f:spec": map[string]any{"f:containers": fields}}}}
	}
	one := map[string]any{`k:{"name":"one"}`: map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:image": map[string]any{}}}
	two := map[string]any{`k:{"name":"two"}`: map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:image": map[string]any{}}}
	// Somebody has put a container in front, so that the indices differ.
	object := live([]any{container("sidecar", "s"), container("one", "i"), container("two", "changed")}, map[string]map[string]any{"operetta": in(one), "other": in(two)})
	p := inline.Program(t, header+deployment)
	for path, row := range map[string]struct {
		reason  string
		owners  []string
		differs bool
	}{
		".spec.template.spec.containers[0].image":                {"the first container of the package is the second one of the cluster", []string{"operetta"}, false},
		".spec.template.spec.containers[1].image":                {"another manager has changed it", []string{"other"}, true},
		`.spec.template.spec.containers[name="two"].image`:       {"a key means the same item", []string{"other"}, true},
		".spec.template.spec.containers":                         {"each owns parts", []string{"operetta parts", "other parts"}, true},
		".spec.replicas":                                         {"nobody owns it", nil, true},
		".spec.template.spec.containers[name=\"sidecar\"].image": {"it is not of the package", nil, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			a, err := why.Ask(t.Context(), p, render.Input{CR: site(map[string]any{}), Manifests: []map[string]any{object}}, why.Question{Object: "c", Path: path})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range a.Live.Owners {
				name := o.Manager
				if o.Parts {
					name += " parts"
				}
				got = append(got, name)
			}
			if diff := cmp.Diff(row.owners, got); diff != "" || a.Live.Differs != row.differs {
				t.Errorf("%s: differs %t, want %t (-want +got):\n%s", path, a.Live.Differs, row.differs, diff)
			}
		})
	}
}

// denying is a cluster some of whose kinds may not be read.
type denying struct {
	*memory.Cluster

	kind string
}

func (d denying) GetLive(ctx context.Context, ref cluster.Ref) (*unstructured.Unstructured, error) {
	if ref.Kind == d.kind {
		return nil, errors.New("forbidden")
	}
	return d.Cluster.GetLive(ctx, ref)
}

func TestInputsThatInputsNameAreReadAndWhatIsForbiddenIsNoted(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, header+`inputs: first: {apiVersion: "v1", kind: "ConfigMap", name: "first"}
inputs: second: {apiVersion: "v1", kind: "ConfigMap", name: inputs.first.object.data.next}
inputs: third: {apiVersion: "v1", kind: "Secret", name: "third"}
`+component(`k: inputs.second.object.data.text`))
	m := memory.New()
	for name, data := range map[string]map[string]any{"first": {"next": "second"}, "second": {"text": "found"}} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
		u.SetName(name)
		u.SetNamespace("default")
		if _, err := m.Put("person", u); err != nil {
			t.Fatal(err)
		}
	}
	cr := &unstructured.Unstructured{Object: site(map[string]any{})}
	cr.SetNamespace("default")
	cr.SetResourceVersion("1")
	in, notes, err := why.Gather(t.Context(), denying{m, "Secret"}, p, cr)
	if err != nil {
		t.Fatal(err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "third cannot be read: forbidden") {
		t.Errorf("the notes are %q", notes)
	}
	a, err := ask(t, p, in, ".data.k")
	if err != nil || a.Value != "found" || a.Sources[0].Object != "ConfigMap/second" {
		t.Errorf("it is %+v, %v", a, err)
	}
}

func TestQuestionsThatMeanNothingAreFaults(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, header+component(`k: "x"`))
	for path, want := range map[string]string{
		".data.kk":         "did you mean k?",
		".dat":             "did you mean data?",
		".data.k.below":    ".data.k has no fields",
		".data[":           "no path of a field",
		".data..k":         "no path of a field",
		".data.k]":         "has no field",
		`.data["k\u001b"]`: "has no field",
	} {
		_, err := ask(t, p, render.Input{}, path)
		var faults fault.Faults
		if !errors.As(err, &faults) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestAnAnswerIsBounded asks about a value that is made of a great many others.
func TestAnAnswerIsBounded(t *testing.T) {
	t.Parallel()
	var names, fields strings.Builder
	const many = 2500
	for i := range many {
		fmt.Fprintf(&names, "\\(_n%d)", i)
		fmt.Fprintf(&fields, "_n%d: cr.spec.mode\n", i)
	}
	p := inline.Program(t, header+component(`k: "`+names.String()+`"`)+fields.String())
	a, err := ask(t, p, render.Input{}, ".data.k")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Notes) != 1 || len(a.Lines) < 1000 || len(a.Lines) >= many {
		t.Errorf("%d lines, notes %q", len(a.Lines), a.Notes)
	}
}

func TestTextFromAClusterCannotActOnATerminal(t *testing.T) {
	t.Parallel()
	object := live(nil, nil)
	object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{
		"manager": "x\x1b[31m\n", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}},
	}}
	p := inline.Program(t, header+deployment)
	a, err := why.Ask(t.Context(), p, render.Input{CR: site(map[string]any{}), Manifests: []map[string]any{object}}, why.Question{Object: "c", Path: ".spec.replicas"})
	if err != nil {
		t.Fatal(err)
	}
	if text := a.Text(explain.Plain, time.Now()); strings.ContainsAny(text, "\x1b") || !strings.Contains(text, `x\x1b[31m\n`) {
		t.Errorf("it is %q", text)
	}
}
