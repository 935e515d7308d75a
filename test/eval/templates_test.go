package eval

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/evaluate"
	"operetta.dev/engine/program"
	"operetta.dev/engine/vet"
)

// templateSessions is how many sessions are evaluated by templates and by CUE in all.
// OPERETTA_TEMPLATE_SESSIONS asks for more, as a sweep does.
func templateSessions(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("OPERETTA_TEMPLATE_SESSIONS"))
	if os.Getenv("OPERETTA_TEMPLATE_SESSIONS") != "" && err != nil {
		t.Fatal(err)
	}
	return max(n, 600)
}

// perShape is how many sessions have the same fields with other values.
const perShape = 12

// TestTemplatesSayWhatCUESays evaluates made-up sessions of every package of the repository with
// templates, and by CUE.
func TestTemplatesSayWhatCUESays(t *testing.T) {
	t.Parallel()
	packages := everyPackage(t)
	each := templateSessions(t) / len(packages)
	for name, p := range packages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := time.Unix(0, 0)
			metrics := evaluate.NewMetrics()
			options := evaluate.Options{
				CheckEvery: each + 1,
				Metrics:    metrics,
				Now: func() time.Time {
					clock = clock.Add(time.Minute) // no namespace makes too many shapes
					return clock
				},
			}
			e := evaluate.New(p, options)
			options.Templates, options.Metrics = evaluate.TemplatesChecked, evaluate.NewMetrics()
			checked := evaluate.New(p, options)
			hash := fnv.New64()
			_, _ = hash.Write([]byte(name))
			m := &madeUp{Rand: rand.New(rand.NewPCG(hash.Sum64(), 1)), p: p, samples: vet.Samples(p)}
			if len(m.samples) == 0 {
				t.Skip("no resource of it can be made up")
			}
			var s program.Session
			for i := range each {
				switch {
				case i%perShape == 0:
					s = m.session()
					m.made = append(m.made[max(0, len(m.made)-mixedOf+1):], s)
				case i%3 == 2:
					s = m.mixed()
				default:
					s = m.withOtherValues(s)
				}
				want := byCUE(p, s)
				if !want.sameByTemplate(t, e, s) || i%everyChecked == 0 && !want.sameWhereChecked(t, checked, s) {
					break
				}
			}
			by := counted(t, metrics)
			expectAnswers(t, name, each, by["evaluations_total template"], by["template_compiles_total faulty"])
			t.Log(by)
			for _, of := range []map[string]float64{by, counted(t, options.Metrics)} {
				if n := of["template_differences_total"]; n > 0 {
					t.Errorf("%v templates differ from CUE where they are compared before they answer", n)
				}
			}
			t.Log("where CUE confirms what templates say:", counted(t, options.Metrics))
		})
	}
}

// untemplated are the packages of which templates answer no session that is made up: a value that is another one in each of
// them decides about the form, or hardly a session is valid.
var untemplated = map[string]bool{
	"cmd/operetta/testdata/script/dryrun_refused.txtar/shop":  true,
	"cmd/operetta/testdata/script/new_cr.txtar/shop":          true,
	"cmd/operetta/testdata/script/secrets.txtar/leaky":        true,
	"cmd/operetta/testdata/script/vet_inputs.txtar/nameless":  true,
	"cmd/operetta/testdata/script/vet_inputs.txtar/number":    true,
	"cmd/operetta/testdata/script/vet_large.txtar/big":        true,
	"cmd/operetta/testdata/script/vet_unfinished.txtar/crash": true,
	"cmd/operetta/testdata/script/why.txtar/leaky":            true,
	"docs/tutorial.md/board, version 7":                       true,
}

// fewSessions is how many sessions of a package tell nothing if no template has answered: they may all have a shape, or values
// that are invalid, of their own.
const fewSessions = 4 * perShape

// expectAnswers expects that templates have answered at all: where they never do, they differ nowhere from CUE. Of the
// reference package they answer most, apart from those that are invalid: those are for CUE.
func expectAnswers(t *testing.T, name string, asked int, answered, invalid float64) {
	t.Helper()
	if asked < fewSessions {
		return
	}
	if answered == 0 && !untemplated[name] {
		t.Errorf("templates have answered none of %d sessions", asked)
	}
	if share := answered / (float64(asked) - invalid); strings.HasSuffix(name, "cue/webapp") && share < 0.5 {
		t.Errorf("templates have answered %v of %d sessions of the reference package, of which %v are invalid", answered, asked, invalid)
	}
}

// everyChecked is of how many sessions one is evaluated where CUE confirms what templates say.
const everyChecked = 4

// An answer is what CUE says of a session. It takes most of the time of the sweep, so it is asked once for each.
type answer struct {
	rollout program.Rollout
	err     error
}

// byCUE returns what CUE says of a session.
func byCUE(p *program.Program, s program.Session) answer {
	r, err := p.Evaluate(s)
	return answer{r, err}
}

// sameWhereChecked reports whether CUE confirms no more than what it would say itself, and whether a template predicts that.
func (want answer) sameWhereChecked(t *testing.T, e *evaluate.Evaluator, s program.Session) bool {
	t.Helper()
	predicted, known := e.Predict(s)
	if known && (want.err != nil || !reflect.DeepEqual(predicted, want.rollout)) {
		text, _ := json.Marshal(s)
		t.Errorf("it predicts something else, error %v (-CUE +template):\n%s\nsession %s", want.err, cmp.Diff(want.rollout, predicted), text)
		return false
	}
	return want.sameByTemplate(t, e, s)
}

// counted returns what some metrics have counted.
func counted(t *testing.T, metrics *evaluate.Metrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "operetta_")
			for _, l := range metric.GetLabel() {
				if l.GetName() != "package" {
					name += " " + l.GetValue()
				}
			}
			if v := metric.GetCounter().GetValue(); v > 0 {
				out[name] = v
			}
		}
	}
	return out
}

// sameByTemplate evaluates a session by templates, and reports whether they say the same as CUE.
func (want answer) sameByTemplate(t *testing.T, e *evaluate.Evaluator, s program.Session) bool {
	t.Helper()
	got, gotErr := e.Evaluate(s)
	if reflect.DeepEqual(got, want.rollout) && reflect.DeepEqual(gotErr, want.err) {
		return true
	}
	text, _ := json.Marshal(s)
	t.Errorf("errors %v and %v; (-CUE +template):\n%s\nsession %s", want.err, gotErr, cmp.Diff(want.rollout, got), text)
	return false
}

// madeUp makes sessions of a package up.
type madeUp struct {
	*rand.Rand
	p       *program.Program
	samples []program.Session
	// made are the last sessions that were made up.
	made []program.Session
}

// words are texts that are quoted, escaped or read in some special way somewhere.
var words = []string{"a", "nginx:1.25", "x y", "ü", "<&>", `q"uote`, `back\slash`, "line\nbreak", "", "100m", "128Mi", "3", "*", "\u2028", "{{x}}", "tab\there", "#!", "true", "null", "0x1", "True", "False", "2026-01-01T00:00:00Z", "YQ=="}

// session returns a session of a shape that is made up.
func (m *madeUp) session() program.Session {
	s := m.samples[m.IntN(len(m.samples))]
	out := program.Session{CR: runtime.DeepCopyJSON(s.CR)}
	if spec, ok := out.CR["spec"].(map[string]any); ok {
		m.thin(spec)
		out.CR["spec"] = m.vary(spec)
	}
	meta, _ := out.CR["metadata"].(map[string]any)
	meta["generation"] = m.Int64N(5)
	if m.IntN(2) == 0 {
		meta["labels"] = map[string]any{"team": m.word(), "app": m.word()}
		meta["annotations"] = map[string]any{"note": m.word()}
	}
	for range m.IntN(3) {
		m.observe(&out)
	}
	m.refer(&out)
	if m.IntN(4) == 0 {
		m.configure(&out)
	}
	return out
}

// mixedOf is of how many sessions others are mixed: the fewer, the more of them consist of parts that have been seen.
const mixedOf = 3

// mixed returns a session whose fields, live objects and inputs are those of others, each of any of them: each part of it has
// been seen, and the whole has not.
func (m *madeUp) mixed() program.Session {
	one := func() program.Session { return m.made[m.IntN(len(m.made))] }
	first := one()
	out := program.Session{
		CR: runtime.DeepCopyJSON(first.CR), Config: first.Config,
		Live: map[string]map[string]map[string]any{}, Inputs: map[string]program.FoundInput{},
	}
	for _, name := range m.p.Syntax().Components() {
		if live, ok := one().Live[name]; ok {
			out.Live[name] = live
		}
	}
	for _, in := range slices.Sorted(maps.Keys(first.Inputs)) {
		if found, ok := one().Inputs[in]; ok {
			out.Inputs[in] = found
		}
	}
	if m.IntN(3) > 0 {
		return out
	}
	spec, _ := out.CR["spec"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		other, _ := one().CR["spec"].(map[string]any)
		if v, ok := other[name]; ok {
			spec[name] = v
		} else if m.IntN(4) == 0 {
			delete(spec, name)
		}
	}
	return out
}

// configure gives a session a configuration like the package's own.
func (m *madeUp) configure(s *program.Session) {
	var config map[string]any
	text, err := m.p.Config().Schema().MarshalJSON()
	if err != nil || utiljson.Unmarshal(text, &config) != nil {
		return
	}
	m.thin(config)
	values, _ := m.vary(config).(map[string]any)
	s.Config = []program.Layer{{Origin: "ConfigMap", Values: values}}
}

// thin removes some fields and elements, and adds keys to maps.
func (m *madeUp) thin(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch m.IntN(8) {
			case 0:
				delete(v, key)
				continue
			case 1:
				v[[]string{"A", "k.x", "a/b", "_h", "#d", "a-b", "z"}[m.IntN(7)]] = runtime.DeepCopyJSONValue(v[key])
			}
			m.thin(v[key])
		}
	case []any:
		for _, e := range v {
			m.thin(e)
		}
	}
}

// vary returns data with other scalars.
func (m *madeUp) vary(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out[key] = m.vary(v[key])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = m.vary(e)
		}
		return out
	}
	if m.IntN(3) == 0 {
		return v
	}
	return m.like(v)
}

// like returns another scalar of the same kind, or the same data.
func (m *madeUp) like(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return m.vary(v)
	case string:
		switch m.IntN(3) {
		case 0:
			return m.word()
		case 1:
			return v + strconv.Itoa(m.IntN(100))
		}
		return strings.ToLower(v)
	case int64:
		return []int64{v + 1, v - 1, m.Int64N(10), m.Int64N(100), m.Int64N(70_000)}[m.IntN(5)]
	case float64:
		return v + float64(m.IntN(8))/4
	case bool:
		return m.IntN(2) == 0
	}
	return v
}

func (m *madeUp) word() string { return words[m.IntN(len(words))] }

// observe makes what the package renders live, with some objects left out.
func (m *madeUp) observe(s *program.Session) {
	r, err := m.p.Evaluate(*s)
	if err != nil {
		return
	}
	live := map[string]map[string]map[string]any{}
	for _, c := range r.Components {
		live[c.Name] = maps.Clone(s.Live[c.Name])
		if live[c.Name] == nil {
			live[c.Name] = map[string]map[string]any{}
		}
		for _, o := range c.Objects {
			if o.Manifest == nil || m.IntN(6) == 0 {
				continue
			}
			object := runtime.DeepCopyJSON(o.Manifest)
			if meta, ok := object["metadata"].(map[string]any); ok {
				meta["uid"], meta["resourceVersion"] = "u"+c.Name, "1"
			}
			live[c.Name][o.Name] = object
		}
	}
	s.Live = live
}

// refer sets some of the fields of live objects and inputs that the package refers to.
func (m *madeUp) refer(s *program.Session) {
	for _, ref := range m.p.Syntax().References() {
		path := ref.Path
		switch {
		case path[0] == "live" && len(path) > 3 && s.Live[path[1]][path[2]] != nil:
			m.set(s.Live[path[1]][path[2]], path[3:])
		case path[0] == "inputs" && len(path) > 2:
			m.input(s, path)
		}
	}
}

// input makes an object of an input up.
func (m *madeUp) input(s *program.Session, path []string) {
	if s.Inputs == nil {
		s.Inputs = map[string]program.FoundInput{}
	}
	found, ok := s.Inputs[path[1]]
	if !ok && m.IntN(4) > 0 {
		kind := m.p.Static().KindAt([]string{"inputs", path[1]})
		for _, name := range []string{"one", "two"}[:1+m.IntN(2)*btoi(path[2] == "objects")] {
			found.Objects = append(found.Objects, map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "town", "uid": "u" + name}})
		}
		found.Several = path[2] == "objects"
	}
	for _, object := range found.Objects {
		rest := path[3:]
		if found.Several && len(rest) > 0 {
			rest = rest[1:]
		}
		m.set(object, rest)
	}
	s.Inputs[path[1]] = found
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// set sets a field, unless something else is there.
func (m *madeUp) set(object map[string]any, path []string) {
	for i, name := range path {
		if m.IntN(8) == 0 {
			return
		}
		if i == len(path)-1 {
			if _, there := object[name]; !there {
				object[name] = []any{m.Int64N(4), m.Int64N(4), m.word(), m.IntN(2) == 0}[m.IntN(4)]
			}
			return
		}
		inner, ok := object[name].(map[string]any)
		if !ok && object[name] != nil {
			return
		}
		if !ok {
			inner = map[string]any{}
			object[name] = inner
		}
		object = inner
	}
}

// withOtherValues returns a session of the same fields with other values, mostly.
func (m *madeUp) withOtherValues(s program.Session) program.Session {
	out := program.Session{Live: map[string]map[string]map[string]any{}, Config: s.Config}
	out.CR, _ = m.vary(s.CR).(map[string]any)
	for _, key := range []string{"apiVersion", "kind"} {
		out.CR[key] = s.CR[key]
	}
	for _, component := range slices.Sorted(maps.Keys(s.Live)) {
		objects := s.Live[component]
		out.Live[component] = map[string]map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			object, _ := m.vary(objects[name]).(map[string]any)
			object["kind"] = objects[name]["kind"]
			if m.IntN(4) == 0 {
				object = objects[name]
			}
			out.Live[component][name] = object
		}
	}
	if s.Inputs != nil {
		out.Inputs = map[string]program.FoundInput{}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Inputs)) {
		found := program.FoundInput{Several: s.Inputs[name].Several}
		for _, o := range s.Inputs[name].Objects {
			object, _ := m.vary(o).(map[string]any)
			for _, key := range []string{"apiVersion", "kind", "metadata"} {
				object[key] = o[key]
			}
			found.Objects = append(found.Objects, object)
		}
		out.Inputs[name] = found
	}
	return out
}
