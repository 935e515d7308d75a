package attack

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// spendingPackage gives a user every function whose cost grows with a number or a text.
const spendingPackage = `package NAME

import (
	"encoding/json"
	"list"
	"math/bits"
	"strings"
	"struct"
	"text/template"
)

limits: bytes: 1_572_864

#Spec: {
	range:    int | *1
	shift:    int | *1
	loops:    int | *1
	template: string | *"hello"
	list:     strings.MaxRunes(1_500_000) | *"[]"
	text:     string | *""
	env?:     {[string]: string} & struct.MaxFields(100_000)
}

_loop: list.Range(0, cr.spec.loops, 1)
components: greeting: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: {
		aText:     cr.spec.text
		aRange:    "\(len(list.Range(0, cr.spec.range, 1)))"
		aShift:    "\(len("\(bits.Lsh(1, cr.spec.shift))"))"
		aTemplate: template.Execute(cr.spec.template, "x")
		aList:     "\(len(json.Unmarshal(cr.spec.list)))"
		aLoop:     "\(len([for a in _loop for b in _loop for c in _loop for d in _loop {a + b + c + d}]))"
	}
}
components: env: objects: {if cr.spec.env != _|_ {map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-env", data: cr.spec.env}}}
`

// spendings are specs that make CUE take all time or memory there is.
var spendings = map[string]map[string]any{
	"range":    {"range": int64(1_000_000_000)},
	"shift":    {"shift": int64(100_000_000_000)},
	"loops":    {"loops": int64(2000)},
	"template": {"template": endless},
	"list":     {"list": "[" + strings.Repeat("[],", 330_000) + "[]]"},
	"memory":   {"range": int64(20_000_000)},
}

// editLimit is how long the effect of an edit may take while the evaluations of others never end, which
// first cost two workers for two seconds.
const editLimit = 10 * time.Second

// TestAttackEvaluationsWithoutAnEndHoldNobodyUp: each of these took a processor, or all memory, for ever.
func TestAttackEvaluationsWithoutAnEndHoldNobodyUp(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "spending", "")
	harness.WriteFile(t, filepath.Join(p.Dir, "body.cue"), strings.ReplaceAll(spendingPackage, "NAME", p.Name))
	o, memory := s.StartOperatorWithin(memoryLimit, p.Dir, harness.Everywhere, harness.Alone, "--health-probe-bind-address", harness.AnyPort, "--evaluation-memory=128Mi")
	far := s.OtherNamespace()
	mallory, bob := s.Tenant("mallory", s.Namespace, things(p)), s.Tenant("bob", far, things(p))
	var good []*unstructured.Unstructured
	for i := range 5 {
		good = append(good, bob.Create(inNamespace(p.Thing(s, fmt.Sprint("good-", i), nil), far)))
		s.ExpectResourceReady(good[i])
	}
	ctx, stop := context.WithCancel(t.Context())
	var hostile sync.WaitGroup
	for name, spec := range spendings {
		mallory.Create(p.Thing(s, name, spec))
		hostile.Go(func() {
			for nth := 0; ctx.Err() == nil; nth++ { // another text is another evaluation
				_ = mallory.Client.Patch(ctx, p.Thing(s, name, nil), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"text":"%d"}}`, nth)))
				<-time.After(time.Second)
			}
		})
	}
	var took []time.Duration
	for i := range 40 {
		edited := s.Patch(good[i%len(good)], harness.Spec(map[string]any{"text": fmt.Sprint(i)}))
		began := time.Now()
		s.ExpectResourceReady(edited)
		took = append(took, time.Since(began))
		if code := o.Probe("healthz"); code != http.StatusOK {
			t.Fatalf("healthz is %d", code)
		}
	}
	stop()
	hostile.Wait()
	for name := range spendings {
		if name != "list" { // a megabyte may be read within the limits
			expectSpent(s, p.Thing(s, name, nil))
		}
	}
	slices.Sort(took)
	t.Logf("%d edits: median %s, slowest %s", len(took), took[len(took)/2], took[len(took)-1])
	harness.ExpectWithin(t, editLimit, "the slowest edit", took[len(took)-1])
	memory.ExpectKept(o)
}

// expectSpent waits until a resource is not Ready because of what its evaluation takes.
func expectSpent(s *harness.Env, u *unstructured.Unstructured) {
	s.T.Helper()
	s.ExpectObject(u, "to be beyond a limit", func(u *unstructured.Unstructured) error {
		c := harness.Condition(u, "Ready")
		if message := fmt.Sprint(c["message"]); c["status"] == "False" && strings.Contains(message, "its evaluation") {
			return nil
		}
		return fmt.Errorf("Ready is %v: %v: %v", c["status"], c["reason"], c["message"])
	})
}

// TestAttackWorkersEndWithTheOperator: whatever hangs in them.
func TestAttackWorkersEndWithTheOperator(t *testing.T) {
	t.Parallel()
	s := harness.NewEnv(t)
	p := harness.NewTestPackage(t, "orphans", "")
	harness.WriteFile(t, filepath.Join(p.Dir, "body.cue"), strings.ReplaceAll(templatePackage, "NAME", p.Name))
	// No namespace has all workers.
	o := s.StartOperator(p.Dir, harness.Alone, "--evaluation-time=10m", "--evaluation-workers=3")
	for i := range 2 {
		s.Create(p.Thing(s, fmt.Sprint("hangs-", i), map[string]any{"template": endless, "text": "a"}))
	}
	var workers []string
	harness.Eventually(t, "two workers", func() error {
		if workers = childrenOf(t, o.PID()); len(workers) < 2 {
			return fmt.Errorf("there are %v", workers)
		}
		return nil
	})
	o.Kill()
	harness.Eventually(t, "the workers to end", func() error {
		for _, dir := range workers {
			if text, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil && strings.Contains(string(text), "evaluate") {
				return fmt.Errorf("%s runs", dir)
			}
		}
		return nil
	})
}

// childrenOf returns the folders of the processes that a process has started.
func childrenOf(t *testing.T, pid int) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range all {
		text, _ := os.ReadFile(file) // a process may have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == fmt.Sprint(pid) {
			out = append(out, filepath.Dir(file))
		}
	}
	return out
}
