package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/controller"
)

// A rolling update ends the leader once the new process is ready, and only a process that leads installs a definition.
func TestAStandbyIsReadyOnlyWhileItWaitsForADefinition(t *testing.T) {
	t.Parallel()
	established := numberedDefinition("")
	established.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	first, other := controller.Shard{}, controller.Shard{Index: 1, Count: 2}
	for name, row := range map[string]struct {
		reason  string
		present *apiextensionsv1.CustomResourceDefinition
		shard   controller.Shard
		// ready says whether the process was ready at its first two requests.
		ready []bool
	}{
		"missing":                    {"the leader does not know the kind of a new folder", nil, first, []bool{false, true}},
		"not established":            {"it may stay like that until its own one is installed", numberedDefinition(""), first, []bool{false, true}},
		"established":                {"it does not wait, and has not tried its packages yet", established, first, []bool{false, false}},
		"missing, another shard":     {"shard 0 is replaced after this one", nil, other, []bool{false, true}},
		"established, another shard": {"it does not wait either", established, other, []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &operator{log: logr.Discard(), broken: map[string]bool{"./things": true}, flags: runFlags{crds: crdsApply}}
			o.flags.options.Shard, o.flags.options.LeaderElection = row.shard, true
			if diff := cmp.Diff(row.ready, readyDuring(t, o, row.present)[:2]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			if o.ready() == nil {
				t.Error("it counts as waiting afterwards")
			}
		})
	}
}

// readyDuring has a process that does not lead install the definition of things, and returns whether it was ready at each request. The
// process ends when it looks at the definition for the second time.
func readyDuring(t *testing.T, o *operator, present *apiextensionsv1.CustomResourceDefinition) []bool {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var mu sync.Mutex
	var ready []bool
	looks, has := 0, (&definitionStore{t: t, is: present}).serving()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		ready = append(ready, o.ready() == nil)
		if strings.Contains(r.URL.Path, "/customresourcedefinitions/") {
			looks++
		}
		if looks == 2 {
			end()
			<-r.Context().Done() // an answer could reach the process before it learns that it ends
			return
		}
		has.ServeHTTP(w, r)
	}))
	defer server.Close()
	o.config = &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	var err error
	if o.manager, err = controller.New(o.config, controller.Options{InProcess: true}); err != nil {
		t.Fatal(err)
	}
	if err := o.installDefinition(ctx, numberedDefinition("")); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return ready
}
