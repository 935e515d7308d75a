package dryrun

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
)

func TestASummarySaysFirstWhatSomebodyMayRegret(t *testing.T) {
	t.Parallel()
	change := func(op cluster.Operation, kind, name string) cluster.ObjectChange {
		return cluster.ObjectChange{Change: cluster.Change{Operation: op, Ref: cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Name: name}}}
	}
	// A rollout wants two Deployments, one of them in a component that is excluded.
	rendered := func(name string) program.Component {
		return program.Component{Name: name, Objects: []program.Object{{Identity: object.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Deployment"}, Name: name}}}}
	}
	last := program.Rollout{Components: []program.Component{rendered("kept"), rendered("excluded")}}
	reported := map[string]any{"components": []any{map[string]any{"name": "kept", "state": "Waiting"}, map[string]any{"name": "excluded", "state": "Excluded"}}}
	var many []cluster.ObjectChange
	for i := range 7 {
		many = append(many, change(cluster.Created, "ConfigMap", fmt.Sprint(i)))
	}
	for name, tc := range map[string]struct {
		reason  string
		changes []cluster.ObjectChange
		want    []string
	}{
		"Nothing":  {"there is nothing to say", nil, nil},
		"Order":    {"what is lost comes first", []cluster.ObjectChange{change(cluster.Created, "Secret", "a"), change(cluster.Updated, "Service", "b"), change(cluster.Deleted, "Pod", "c")}, []string{"deletes Pod c", "updates Service b", "creates Secret a"}},
		"Recreate": {"an object that is deleted and created is made anew", []cluster.ObjectChange{change(cluster.Deleted, "Deployment", "web"), change(cluster.Created, "Deployment", "web")}, []string{"recreates Deployment web"}},
		"Waiting":  {"an object that is deleted and still wanted is made anew", []cluster.ObjectChange{change(cluster.Deleted, "Deployment", "kept")}, []string{"recreates Deployment kept"}},
		"Excluded": {"an object of an excluded component is not wanted", []cluster.ObjectChange{change(cluster.Deleted, "Deployment", "excluded")}, []string{"deletes Deployment excluded"}},
		"Names":    {"another object of the kind is another one", []cluster.ObjectChange{change(cluster.Deleted, "Deployment", "web"), change(cluster.Created, "Deployment", "other")}, []string{"deletes Deployment web", "creates Deployment other"}},
		"Many":     {"nobody reads a hundred lines", many, []string{"creates ConfigMap 0", "creates ConfigMap 1", "creates ConfigMap 2", "creates ConfigMap 3", "creates ConfigMap 4", "creates 2 more objects"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Summary(Step{Changes: tc.changes, Status: reported}, last)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
