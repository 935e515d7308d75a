package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/source"
)

// errRefused is what the API server says of a permission that is missing.
var errRefused = apierrors.NewForbidden(schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}, "things.example.com", errors.New(`user "operator" cannot get resource`))

func TestWhatLacksAPermissionIsTriedUntilItIsGrantedAndSaid(t *testing.T) {
	t.Parallel()
	errOther := errors.New("another one")
	for name, row := range map[string]struct {
		reason string
		// granted is when the permission comes, and then is what comes of it.
		granted time.Duration
		then    error
		said    int
	}{
		"there from the start":       {"nothing has to be said", 0, nil, 0},
		"granted after nine seconds": {"it is tried again soon, and said once", 9 * time.Second, nil, 1},
		"granted after an hour":      {"nobody has to start the process again", time.Hour, nil, 1},
		"another error after that":   {"the permission is not all", 9 * time.Second, errOther, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				said := 0
				o := &operator{log: funcr.New(func(_, text string) {
					if strings.Contains(text, "cannot get resource") {
						said++
					}
				}, funcr.Options{})}
				began := time.Now()
				err := o.untilAllowed(t.Context(), "things.example.com", func() error {
					if time.Since(began) < row.granted {
						return errRefused
					}
					return row.then
				})
				if took := time.Since(began); !errors.Is(err, row.then) || took > row.granted+refusedRetry || said != row.said {
					t.Errorf("%s: %v after %s, said %d times; want %v by %s, %d times", row.reason, err, took, said, row.then, row.granted+refusedRetry, row.said)
				}
				if err := o.ready(); err != nil {
					t.Errorf("%s: it is not ready afterwards: %v", row.reason, err)
				}
			})
		})
	}
}

func TestAProcessThatLacksAPermissionIsNotReadyAndNamesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &operator{log: logr.Discard(), waiting: 1}
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- o.untilAllowed(ctx, "things.example.com", func() error { return errRefused }) }()
		synctest.Wait()
		if err := o.ready(); err == nil || !strings.Contains(err.Error(), `things.example.com: `+errRefused.Error()) {
			t.Errorf("it says %v", err)
		}
		end()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	})
}

func TestADefinitionThatLacksAPermissionKeepsNoOtherOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &operator{log: logr.Discard()}
		began, installed := time.Now(), map[string]time.Duration{}
		err := o.installAll(t.Context(), map[string]*apiextensionsv1.CustomResourceDefinition{"a": named("a"), "b": named("b"), "c": named("c")}, func(_ context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
			if crd.Name == "b" && time.Since(began) < 10*time.Second {
				return errRefused
			}
			installed[crd.Name] = time.Since(began)
			return nil
		})
		if diff := cmp.Diff(map[string]time.Duration{"a": 0, "b": 10 * time.Second, "c": 0}, installed); diff != "" || err != nil {
			t.Errorf("%v; installed after (-want +got):\n%s", err, diff)
		}
	})
}

func named(name string) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{}
	out.Name = name
	return out
}

func TestAPackageThatLacksAPermissionWaitsForItAndEndsNoProcess(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		says := errRefused.Status()
		says.Kind, says.APIVersion = "Status", "v1"
		respond(t, w, "", says)
	}))
	defer server.Close()
	o := &operator{log: logr.Discard(), broken: map[string]bool{"./things": true}, flags: runFlags{crds: crdsApply}}
	o.config = &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	var err error
	if o.manager, err = controller.New(o.config, controller.Options{InProcess: true}); err != nil {
		t.Fatal(err)
	}
	w, err := o.serveFirst(t.Context(), firstLoad{dir: "./things", checkedPackage: brokenFolder(t).lastGood.checkedPackage})
	if err != nil {
		t.Fatalf("the process ends: %v", err)
	}
	if got := w.outcome(); got != source.RetrySoon {
		t.Errorf("it is tried again with %d", got)
	}
	if err := o.ready(); err == nil || !strings.Contains(err.Error(), "./things: ") || !strings.Contains(err.Error(), "cannot get resource") {
		t.Errorf("the process says %v", err)
	}
}
