package program_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program"
	"operetta.dev/test/golden"
	"operetta.dev/test/machine"
)

// What a Secret decides is hidden by a second evaluation. Whoever expects another rollout gets what that leaves.
func TestWhatIsNotAsExpectedIsWhatAnEvaluationReturns(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	plain, secret := withCanary(t), loaded(t, "inputs.tok.object.data.k")
	want := evaluate(t, secret, plain)
	said := func(r program.Rollout) bool { return strings.Contains(golden.Rollout(messagesOf(r)), canary) }
	for name, row := range map[string]struct {
		reason    string
		expected  func(program.Rollout) bool
		confirmed bool
	}{
		"nothing is expected":               {"as for an evaluation", func(program.Rollout) bool { return false }, false},
		"what an evaluation returns":        {"messages are hidden in it that the first evaluation has", func(r program.Rollout) bool { return reflect.DeepEqual(r, want) }, false},
		"what the first evaluation returns": {"it is compared with that", func(program.Rollout) bool { return true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, confirmed, err := secret.Confirm(plain, row.expected)
			if err != nil || confirmed != row.confirmed {
				t.Fatalf("%s: confirmed is %v, error %v", row.reason, confirmed, err)
			}
			if confirmed {
				want := program.Rollout{}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("a rollout that was confirmed leaves (-want +got):\n%s", diff)
				}
				return
			}
			if !reflect.DeepEqual(got, want) || said(got) {
				t.Errorf("%s (-evaluated +confirmed):\n%s", row.reason, cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got)))
			}
		})
	}
}
