package dryrun

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
)

func TestASummarySaysFirstWhatSomebodyMayRegret(t *testing.T) {
	t.Parallel()
	change := func(verb cluster.Verb, kind, name string) cluster.Event {
		return cluster.Event{Change: cluster.Change{Verb: verb, Ref: cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Name: name}}}
	}
	var many []cluster.Event
	for i := range 7 {
		many = append(many, change(cluster.Created, "ConfigMap", fmt.Sprint(i)))
	}
	for name, tc := range map[string]struct {
		reason  string
		changes []cluster.Event
		want    []string
	}{
		"Nothing":  {"there is nothing to say", nil, nil},
		"Order":    {"what is lost comes first", []cluster.Event{change(cluster.Created, "Secret", "a"), change(cluster.Updated, "Service", "b"), change(cluster.Deleted, "Pod", "c")}, []string{"deletes Pod c", "updates Service b", "creates Secret a"}},
		"Recreate": {"an object that is deleted and created is made anew", []cluster.Event{change(cluster.Deleted, "Deployment", "web"), change(cluster.Created, "Deployment", "web")}, []string{"recreates Deployment web"}},
		"Names":    {"another object of the kind is another one", []cluster.Event{change(cluster.Deleted, "Deployment", "web"), change(cluster.Created, "Deployment", "other")}, []string{"deletes Deployment web", "creates Deployment other"}},
		"Many":     {"nobody reads a hundred lines", many, []string{"creates ConfigMap 0", "creates ConfigMap 1", "creates ConfigMap 2", "creates ConfigMap 3", "creates ConfigMap 4", "creates 2 more objects"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, Summary(tc.changes)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
