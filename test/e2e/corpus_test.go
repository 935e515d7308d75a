package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"operetta.dev/test/harness"
)

func TestD3NormalisedFieldsOfManyKindsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	dir, err := filepath.Abs(filepath.Join("testdata", "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	o := s.StartOperator(dir)
	cr := harness.Object("corpus.example.com/v1", "Corpus", s.Namespace, "all")
	cr.Object["spec"] = map[string]any{}
	from := harness.MarkAudit(t)
	s.Create(cr)
	got := s.ExpectResourceReady(cr)
	s.WaitUntilIdle()
	created := s.OperatorRequests(from).Mutating()
	kinds := map[string]bool{}
	for _, g := range harness.Field(got, "status", "inventory").([]any) {
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

	from = harness.MarkAudit(t)
	for range forcedPerCheck {
		before := o.Reconciles("corpus.corpus.example.com")
		s.Patch(cr, harness.Annotation("example.com/poke", string(rune('a'+before%26))))
		harness.Eventually(t, "another reconcile", func() error {
			if o.Reconciles("corpus.corpus.example.com") > before {
				return nil
			}
			return harness.ErrNotYet
		})
	}
	if writes := s.OperatorRequests(from).Mutating(); len(writes) > 0 {
		t.Errorf("%d further reconciles wrote: %s", forcedPerCheck, writes)
		s.logRepairs(o)
	}
	s.expectSecretRepaired()
	o.Stop()
	from = harness.MarkAudit(t)
	s.StartOperator(dir)
	s.WaitUntilIdle()
	if writes := s.OperatorRequests(from).Mutating(); len(writes) > len(writes.OfResource("customresourcedefinitions")) {
		t.Errorf("D2: a restart wrote: %s", writes)
	}
}

// expectSecretRepaired changes a field that the API server stores under another name than the package
// renders, and expects that it is repaired.
func (s *env) expectSecretRepaired() {
	s.T.Helper()
	s.Patch(s.Ref("Secret", "all"), map[string]any{"data": map[string]any{"plain": "Zm9yZ2Vk"}})
	harness.Within(s.T, repairLimit, "the repair of the Secret", func() error {
		if got := harness.Field(s.Get("Secret", "all"), "data", "plain"); got != "dGV4dA==" {
			return fmt.Errorf("data.plain is %v", got)
		}
		return nil
	})
	s.WaitUntilIdle()
}

// logRepairs logs the fields that the operator has found to differ.
func (s *env) logRepairs(o *harness.Operator) {
	s.T.Helper()
	for line := range harness.Lines(o.Log.From(0), "msg=Repaired") {
		s.T.Log(line)
	}
}
