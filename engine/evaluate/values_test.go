package evaluate_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"operetta.dev/engine/program"
)

// TestNoValuePassesThatBreaksAForm evaluates each form with values of the resource and of live objects that are near to what the form
// names: most have the shape of another session. It is some of them unless OPERETTA_TEMPLATE_SESSIONS asks for more.
func TestNoValuePassesThatBreaksAForm(t *testing.T) {
	t.Parallel()
	asked, _ := strconv.Atoi(os.Getenv("OPERETTA_TEMPLATE_SESSIONS"))
	answered := &atomic.Int64{}
	t.Cleanup(func() {
		if answered.Load() == 0 {
			t.Error("no template has answered")
		}
		t.Logf("templates have answered %d times", answered.Load())
	})
	for i, f := range slices.Concat(inData, withCalls, inComponents, inSchemas, inDefinitions) {
		if asked == 0 && i%12 != 1 || asked < 100_000 && i%3 != 1 {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(1 + asked/100_000) {
				r := rand.New(rand.NewPCG(hashOf(f.name), seed))
				answered.Add(int64(expectTheSame(t, f.load(t), f.broken(r, max(asked/1800, 5)))))
			}
		})
	}
}

// broken returns sessions of a form with other values than those of formSessions.
func (f form) broken(r *rand.Rand, count int) []program.Session {
	spec := func(s program.Session) map[string]any { return s.CR["spec"].(map[string]any) }
	plain := formSession(1, 0)
	b := newBreaker(r, f.data+f.part+f.root, spec(plain))
	var out []program.Session
	vary := func(j int64, change func(spec map[string]any, name string)) {
		s := formSession(int64(len(out)+1), j)
		s.CR["spec"] = runtime.DeepCopyJSON(spec(plain))
		change(spec(s), pickOf(b, b.names))
		s.CR["spec"] = b.other(spec(s), b.IntN(3))
		for _, objects := range []map[string]map[string]any{s.Live["web"], s.Live["s"]} {
			for _, o := range []map[string]any{objects["cm"], objects["s"]} {
				b.observed(o)
			}
		}
		for _, found := range []program.FoundInput{s.Inputs["i"], s.Inputs["k"], s.Inputs["s"]} {
			for _, o := range found.Objects {
				b.observed(o)
			}
		}
		out = append(out, s)
	}
	for j := range int64(3) {
		for range count {
			vary(j, func(map[string]any, string) {})
		}
		for range count / 5 {
			vary(j, drop)
			vary(j, b.resize)
			vary(j, b.misshape)
		}
	}
	return out
}

// observed changes some of the data of an object.
func (b *breaker) observed(o map[string]any) {
	data, _ := o["data"].(map[string]any)
	for _, key := range sortedKeys(data) {
		switch b.IntN(8) {
		case 0, 1, 2:
			data[key] = b.value(runtime.DeepCopyJSONValue(data[key]))
		case 3:
			delete(data, key)
		}
	}
}
