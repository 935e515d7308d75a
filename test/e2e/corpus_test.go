package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
)

func TestD3NormalisedFieldsOfManyKindsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir, err := filepath.Abs(filepath.Join("testdata", "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	o := s.operate(dir)
	cr := object("corpus.example.com/v1", "Corpus", s.namespace, "all")
	cr.Object["spec"] = map[string]any{}
	from := mark(t)
	s.create(cr)
	got := s.expectAllReady(cr)
	s.settle()
	created := s.operatorRequests(from).mutating()
	kinds := map[string]bool{}
	for _, g := range field(got, "status", "inventory").([]any) {
		for _, e := range g.(map[string]any)["objects"].([]any) {
			kinds[e.(map[string]any)["kind"].(string)] = true
		}
	}
	t.Logf("%d kinds; creation: %d writes (%s)", len(kinds), len(created), created)
	if len(kinds) < 12 {
		t.Errorf("the corpus has only %d kinds", len(kinds))
	}
	twice := map[string]int{}
	for _, e := range created {
		if twice[e.Resource+" "+e.Name]++; e.Subresource == "" && e.Resource != "corpora" && twice[e.Resource+" "+e.Name] > 1 {
			t.Errorf("%s %s was written again before it was settled", e.Resource, e.Name)
		}
	}

	from = mark(t)
	for range pokes {
		before := o.reconciles("corpus.corpus.example.com")
		s.patch(cr, annotation("example.com/poke", string(rune('a'+before%26))))
		eventually(t, "another reconcile", func() error {
			if o.reconciles("corpus.corpus.example.com") > before {
				return nil
			}
			return errNotYet
		})
	}
	if writes := s.operatorRequests(from).mutating(); len(writes) > 0 {
		t.Errorf("%d further reconciles wrote: %s", pokes, writes)
		s.logRepairs(o)
	}
	s.expectSecretRepaired()
	o.stop()
	from = mark(t)
	s.operate(dir)
	s.settle()
	if writes := s.operatorRequests(from).mutating(); len(writes) > len(writes.about("customresourcedefinitions")) {
		t.Errorf("D2: a restart wrote: %s", writes)
	}
}

// expectSecretRepaired changes what the API server stores under another name than
// the package renders it, and expects that it is repaired all the same.
func (s *site) expectSecretRepaired() {
	s.t.Helper()
	s.patch(s.ref("Secret", "all"), map[string]any{"data": map[string]any{"plain": "Zm9yZ2Vk"}})
	within(s.t, repairLimit, "the repair of the Secret", func() error {
		if got := field(s.get("Secret", "all"), "data", "plain"); got != "dGV4dA==" {
			return fmt.Errorf("data.plain is %v", got)
		}
		return nil
	})
	s.settle()
}

// logRepairs shows which fields the operator believes to have lost.
func (s *site) logRepairs(o *operator) {
	s.t.Helper()
	for line := range lines(o.log.from(0), "msg=Repaired") {
		s.t.Log(line)
	}
}
