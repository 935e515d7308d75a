package evaluate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/engine/template"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

// independent is a package of components that know nothing of each other.
func independent(components int) string {
	var b strings.Builder
	fmt.Fprintf(&b, oneShapeHead, "", "{size: int, [string]: int}")
	b.WriteString("_labels: app: cr.metadata.name\n")
	for i := range components {
		fmt.Fprintf(&b, `
components: c%[1]d: {
	objects: d: {apiVersion: "apps/v1", kind: "Deployment", metadata: {name: "\(cr.metadata.name)-%[1]d", labels: _labels}, spec: {
		if cr.spec.c%[1]d != _|_ {replicas: cr.spec.c%[1]d}
		if cr.spec.c%[1]d == _|_ {replicas: cr.spec.size}
	}}
	verify: ready: live.c%[1]d.d.status.readyReplicas == live.c%[1]d.d.spec.replicas
}
status: c%[1]d: *live.c%[1]d.d.status.readyReplicas | 0
`, i)
	}
	return b.String()
}

// Of six components, each of which is absent, new or ready, in a specification with or without a field of its own, there are
// 6 to the power of 6 shapes. CUE compiles a session for each shape of a component at most, and for each specification.
func TestThereIsACompilationForEachShapeOfAComponentAndNotForEachCombination(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	const components, resources = 6, 60
	for name, row := range map[string]struct {
		fields int // how many fields a specification may have or lack
		most   int // how many sessions are compiled at most
		shapes int // of how many, at least
	}{
		"resources whose specifications have one shape": {fields: 0, most: 3 * components, shapes: 150},
		"resources with one of eight specifications":    {fields: 3, most: 1<<3 + 6*components, shapes: 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inline.Program(t, independent(components))
			b := &countingBackend{Backend: evaluate.InProcess(p)}
			clock := time.Unix(0, 0)
			e := evaluate.New(p, evaluate.Options{
				Backend: b, Resources: 1,
				Now: func() time.Time { clock = clock.Add(time.Hour); return clock },
				Differs: func(context.Context, program.Session) {
					t.Error("a template that was assembled says something else than CUE")
				},
			})
			r := rand.New(rand.NewPCG(1, 2))
			shapes := map[template.Key]bool{}
			for i := range resources {
				s := resourceOf(i, r, row.fields)
				for _, c := range r.Perm(components) { // in any order, as a cluster makes them ready
					for _, ready := range []bool{false, true} {
						s.Live["c"+strconv.Itoa(c)] = map[string]map[string]any{"d": deployment(i, c, ready)}
						shapes[p.Views().Of(s).Shape(template.Pins{})] = true
						want, err := p.Evaluate(s)
						got, gotErr := e.Evaluate(s)
						if err != nil || gotErr != nil || !reflect.DeepEqual(want, got) {
							t.Fatalf("errors %v and %v; (-CUE +template):\n%s", err, gotErr, cmp.Diff(want, got))
						}
					}
				}
			}
			compiled := 0
			for _, what := range b.asked {
				if strings.HasPrefix(what, "compile") {
					compiled++
				}
			}
			t.Logf("%d shapes, and %d sessions were compiled", len(shapes), compiled)
			if compiled > row.most || len(shapes) < row.shapes {
				t.Errorf("of %d shapes %d were compiled, want at most %d of at least %d", len(shapes), compiled, row.most, row.shapes)
			}
		})
	}
}

// resourceOf returns a session of a resource that has some of the fields of its components, and no live object yet.
func resourceOf(i int, r *rand.Rand, fields int) program.Session {
	spec := map[string]any{"size": int64(i)}
	for c := range fields {
		if r.IntN(2) == 0 {
			spec["c"+strconv.Itoa(c)] = int64(i)
		}
	}
	return program.Session{CR: map[string]any{
		"apiVersion": "shop.example/v1", "kind": "Shop", "spec": spec,
		"metadata": map[string]any{"name": fmt.Sprint("n", i), "namespace": "town", "uid": fmt.Sprint("u", i)},
	}, Live: map[string]map[string]map[string]any{}}
}

// deployment returns the object of a component of a resource, as the cluster has it.
func deployment(i, component int, ready bool) map[string]any {
	out := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(i)},
		"metadata": map[string]any{"name": fmt.Sprintf("n%d-%d", i, component), "namespace": "town"},
	}
	if ready {
		out["status"] = map[string]any{"readyReplicas": int64(i)}
	}
	return out
}

// A message of one component may show a value in capitals, until another one renders a Secret from the same value. Both have been seen
// apart, and together they must not be put together.
func TestPartsAreNotPutTogetherIfOneShowsWhatTheOtherHides(t *testing.T) {
	t.Parallel()
	p := inline.Program(t, fmt.Sprintf(oneShapeHead, "import \"strings\"", "{word: string}")+`
components: a: {
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a"}
	verify: same: strings.ToUpper(cr.spec.word) == live.a.o.data.seen
}
components: b: objects: {
	cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "b"}
	if live.b.cm.data.more != _|_ {s: {apiVersion: "v1", kind: "Secret", metadata: name: "s", stringData: w: cr.spec.word}}
}
`)
	clock := time.Unix(0, 0)
	e := evaluate.New(p, evaluate.Options{
		Now:     func() time.Time { clock = clock.Add(time.Hour); return clock },
		Differs: func(context.Context, program.Session) { t.Error("a template says something else than CUE") },
	})
	for i, live := range []string{`{a: {o: {data: {seen: x}}}, b: {cm: {data: {}}}}`, `{a: {o: {data: {}}}, b: {cm: {data: {more: x}}}}`, `{a: {o: {data: {seen: x}}}, b: {cm: {data: {more: x}}}}`} {
		s := resourceOf(i, nil, 0)
		s.CR["spec"] = map[string]any{"word": "opensesame"}
		inline.Decode(t, live, &s.Live)
		want, err := p.Evaluate(s)
		got, gotErr := e.Evaluate(s)
		if err != nil || gotErr != nil || !reflect.DeepEqual(want, got) {
			t.Errorf("session %d: errors %v and %v; (-CUE +template):\n%s", i, err, gotErr, cmp.Diff(want, got))
		}
	}
}
