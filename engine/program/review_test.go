package program_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
)

// A review is what of a Review these tests compare.
type review struct {
	Warnings []string
	Labels   map[string]string
	Spec     map[string]any
}

func TestAPackageReviewsAResource(t *testing.T) {
	t.Parallel()
	const warned = "admission: warnings: "
	spec := func(more map[string]any) map[string]any {
		out := map[string]any{"size": int64(2)}
		maps.Copy(out, more)
		return out
	}
	for name, tc := range map[string]struct {
		reason, body, spec string
		want               review
	}{
		"Silent":             {"a package need not say anything", ``, `{}`, review{Spec: spec(nil)}},
		"Warning":            {"a text is a warning", warned + `a: "beware"`, `{}`, review{Warnings: []string{"beware"}, Spec: spec(nil)}},
		"Unwarranted":        {"an if says when it is shown", warned + `{if cr.spec.size > 2 {a: "large"}}`, `{}`, review{Spec: spec(nil)}},
		"Warranted":          {"an if says when it is shown", warned + `{if cr.spec.size > 2 {a: "size \(cr.spec.size)"}}`, `{size: 3}`, review{Warnings: []string{"size 3"}, Spec: map[string]any{"size": int64(3)}}},
		"Incomplete":         {"nothing is said of what is not there", warned + `{a: "\(cr.spec.name)!", b: "said"}`, `{}`, review{Warnings: []string{"said"}, Spec: spec(nil)}},
		"ByName":             {"the order does not depend on the text", warned + `{b: "1", a: "2"}`, `{}`, review{Warnings: []string{"2", "1"}, Spec: spec(nil)}},
		"Long":               {"the API server drops what is too long", warned + `a: strings.Repeat("ä", 1000)`, `{}`, review{Warnings: []string{strings.Repeat("ä", 128)}, Spec: spec(nil)}},
		"Live":               {"a request is judged by what it says", warned + `{if live.web.o != _|_ {a: "there"}}`, `{}`, review{Spec: spec(nil)}},
		"Literal":            {"what the package keeps in a Secret is not said", warned + `a: "the word is opensesame"` + "\n" + `components: web: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: word: "opensesame"}`, `{}`, review{Spec: spec(nil)}},
		"SecretSpec":         {"what a Secret is rendered from is not said", warned + `a: "the word is \(cr.spec.name)"` + "\n" + `components: web: objects: s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: word: cr.spec.name}`, `{name: opensesame}`, review{Spec: spec(map[string]any{"name": "opensesame"})}},
		"Labels":             {"labels are computed", `admission: labels: {"shop.example/size": "\(cr.spec.size)", "shop.example/name": cr.spec.name}`, `{}`, review{Labels: map[string]string{"shop.example/size": "2"}, Spec: spec(nil)}},
		"DefaultByReference": {"a default that rests on another field is filled in", `#Spec: {size: _, least: int | *size}`, `{size: 4}`, review{Spec: map[string]any{"size": int64(4), "least": int64(4)}}},
		"AbsentOptional":     {"what is optional and absent stays so", `#Spec: {deep?: {a: 1 | *2}}`, `{}`, review{Spec: spec(nil)}},
		"Invalid":            {"what is invalid has no defaults", warned + `a: "beware"`, `{size: 9}`, review{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inline.Program(t, strings.Replace(head, `import "operetta.dev/schemas/operator"`, "import (\n\t\"strings\"\n\t\"operetta.dev/schemas/operator\"\n)\n_used: strings.MinRunes(1)", 1)+tc.body)
			got, err := p.Review(session(t, tc.spec, `{}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, review{got.Warnings, got.Labels, got.Spec}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			rollout, err := p.Evaluate(session(t, tc.spec, `{}`))
			if diff := cmp.Diff(rollout, got.Rollout); diff != "" || err != nil {
				t.Errorf("a review rolls out something else (-evaluate +review): %v\n%s", err, diff)
			}
		})
	}
}

func TestAReviewErrsAsAnEvaluationDoes(t *testing.T) {
	t.Parallel()
	p := compile(t, `limits: objects: 1
components: web: objects: {for k, v in cr.spec.pools {(k): {apiVersion: "v1", kind: "ConfigMap", metadata: name: k}}}`)
	s := session(t, `{pools: {a: 1, b: 2}}`, `{}`)
	_, want := p.Evaluate(s)
	_, got := p.Review(s)
	var limit *program.LimitError
	if !errors.As(got, &limit) || got.Error() != want.Error() {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestThePolicyForFailuresIsWrittenOut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, body string
		closed       bool
		fault        string
	}{
		"Default":   {"nothing depends on a webhook", ``, false, ""},
		"Ignore":    {"it may be said", `admission: failurePolicy: "Ignore"`, false, ""},
		"Fail":      {"an author may want it otherwise", `admission: failurePolicy: "Fail"`, true, ""},
		"Unknown":   {"the API server knows two", `admission: failurePolicy: "Maybe"`, false, "admission.failurePolicy"},
		"Depending": {"the API server asks while nobody answers", `admission: failurePolicy: [if cr.spec.name == "x" {"Fail"}, "Ignore"][0]`, false, "admission.failurePolicy"},
		"Reserved":  {"labels of Kubernetes and of the engine are not the package's", `admission: labels: "app.kubernetes.io/name": "x"`, false, "admission.labels"},
		"Engine":    {"labels of Kubernetes and of the engine are not the package's", `admission: labels: "operetta.dev/owner": "x"`, false, "admission.labels"},
		"NoValue":   {"the API server would refuse the request", `admission: labels: "shop.example/a": "no label"`, false, "admission.labels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := program.Load(inline.Snapshot(t, head+tc.body))
			var faults fault.Faults
			switch {
			case tc.fault == "" && err != nil:
				t.Fatalf("%s: %v", tc.reason, err)
			case tc.fault == "":
				if got := p.Admission().FailsClosed; got != tc.closed {
					t.Errorf("%s: fails closed: %t", tc.reason, got)
				}
			case !errors.As(err, &faults) || !strings.Contains(err.Error(), tc.fault):
				t.Errorf("%s: got %v, want a fault at %s", tc.reason, err, tc.fault)
			}
		})
	}
}
