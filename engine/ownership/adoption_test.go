package ownership_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

func TestOfTwoThatAdoptTheOneThatHasTheObjectKeepsIt(t *testing.T) {
	t.Parallel()
	other := owner
	other.Name, other.UID = "other", "2"
	const whose = "it exists already and belongs to "
	kept := whose + "Shop.example.com default/other, which keeps it: its own policy says adopt: true"
	unreferred := func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) }
	rows := map[string]struct {
		reason string
		theirs program.Policy
		mine   program.Policy
		edit   func(*unstructured.Unstructured)
		want   ownership.Action
		proof  ownership.Evidence
	}{
		"both adopt": {
			reason: "they would take it from each other forever", theirs: program.Policy{Adopt: true}, mine: program.Policy{Adopt: true},
			want: ownership.Action{Decision: ownership.Conflict, Reason: kept}, proof: ownership.ByReference,
		},
		"both adopt, and nothing but marks is left of the owner": {
			reason: "it may be gone", theirs: program.Policy{Adopt: true}, mine: program.Policy{Adopt: true}, edit: unreferred,
			want: ownership.Action{Decision: ownership.Conflict, Reason: kept}, proof: ownership.ByMark,
		},
		"the owner adopts": {
			reason: "to say adopt would not help", theirs: program.Policy{Adopt: true},
			want: ownership.Action{Decision: ownership.Refuse, Reason: kept}, proof: ownership.ByReference,
		},
		"the owner does not": {
			reason: "E6", mine: program.Policy{Adopt: true},
			want: ownership.Action{Decision: ownership.Adopt, Reason: "taken over from Shop other"},
		},
		"a controller without marks took it": {
			reason: "the marks are those of an owner before", theirs: program.Policy{Adopt: true}, mine: program.Policy{Adopt: true}, edit: controlledBy("Robot", "other", "3"),
			want: ownership.Action{Decision: ownership.Adopt, Reason: "taken over from Robot other"},
		},
		"other references do not matter": {
			reason: "only the controller's does", theirs: program.Policy{Adopt: true}, mine: program.Policy{Adopt: true},
			edit: func(u *unstructured.Unstructured) {
				u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "bystander", UID: "4"}})
			},
			want: ownership.Action{Decision: ownership.Conflict, Reason: kept}, proof: ownership.ByMark,
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs, err := ownership.Stamp(other, "config", rendered(row.theirs), ownership.StampOptions{Scope: cluster.Namespaced})
			if err != nil {
				t.Fatal(err)
			}
			live := theirs.Manifest
			if row.edit != nil {
				row.edit(live)
			}
			if diff := cmp.Diff(row.want, ownership.Decide(stamp(t, rendered(row.mine)), live, owner)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			claim, claimed := ownership.ClaimOn(live)
			if claimed != (row.proof != "") || claim.Evidence != row.proof {
				t.Errorf("%s: the claim is %v, proved %q, wanted %q", row.reason, claim, claim.Evidence, row.proof)
			}
		})
	}
}
