package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/controller"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

// thingPackage serves the kind of a definitionStore.
var thingPackage = strings.NewReplacer("shop.example", "example.com", "Shop", "Thing").Replace(terminatingPackage)

// kindOutage is an API server that answers all but the lists of things, as while the webhook that converts them is away, until the outage ends.
type kindOutage struct {
	all    http.Handler
	ends   time.Time
	silent bool
}

// RoundTrip implements http.RoundTripper.
func (o *kindOutage) RoundTrip(req *http.Request) (*http.Response, error) {
	away := time.Now().Before(o.ends)
	lists := strings.HasSuffix(req.URL.Path, "/things")
	out := httptest.NewRecorder()
	switch {
	case lists && away && o.silent:
		<-req.Context().Done()
		return nil, req.Context().Err()
	case lists && away:
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(http.StatusInternalServerError)
		_, _ = out.WriteString(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"conversion webhook: no answer"}`)
	case lists:
		out.Header().Set("Content-Type", "application/json")
		_, _ = out.WriteString(`{"kind":"ThingList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	default:
		o.all.ServeHTTP(out, req)
	}
	return out.Result(), nil
}

// brokenFolder returns a folder that holds no package, with the stored version of the package that it held before.
func brokenFolder(t *testing.T) firstLoad {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "thing.cue")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(thingPackage)
	snapshot, err := readPackage(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	write("package thing\nx: {")
	out := firstLoad{dir: dir, err: fault.Faults{{Message: "it is broken"}}}
	out.state = source.Fingerprint(source.Loader{}.Folder(dir))
	out.lastGood.checkedPackage = checkedPackage{snapshot: snapshot, program: p, crd: numberedDefinition("")}
	return out
}

// The clock is synctest's. Of all that an API server has, nobody but this package needs the things.
func TestAnOutageOfOneKindDelaysOtherPackagesForAShortTimeOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		outage time.Duration
		silent bool
		// served says whether the stored version is served at first, and later is when it is after that.
		served bool
		took   time.Duration
		later  time.Duration
	}{
		"no outage":    {"it is served at once", 0, false, true, 0, 0},
		"a short one":  {"it is waited for", 5 * time.Second, false, true, 6 * time.Second, 0},
		"a long one":   {"the next package comes, and it is tried again every 30 seconds", 35 * time.Second, false, false, startupGrace, 40 * time.Second},
		"a longer one": {"each time it is waited for", 45 * time.Second, false, false, startupGrace, 46 * time.Second},
		"the longest":  {"it is tried again and again", 65 * time.Second, false, false, startupGrace, 80 * time.Second},
		"no answer":    {"a request that hangs is an outage, too", 35 * time.Second, true, false, startupGrace, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			a := brokenFolder(t)
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := serveInOutage(t, a, began.Add(tc.outage), tc.silent)
				if took := time.Since(began); took != tc.took || (w.served != nil) != tc.served {
					t.Errorf("%s: after %s, served is %v", tc.reason, took, w.served != nil)
				}
			})
			if tc.served {
				return
			}
			for _, at := range []time.Duration{tc.later - time.Second, tc.later + time.Second} {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					w := serveInOutage(t, a, began.Add(tc.outage), tc.silent)
					ctx, end := context.WithDeadline(t.Context(), began.Add(at))
					defer end()
					w.follow(ctx)
					if (w.served != nil) != (at > tc.later) {
						t.Errorf("%s: after %s, served is %v", tc.reason, at, w.served != nil)
					}
				})
			}
		})
	}
}

// serveInOutage returns the watch of a folder that was served first while an API server has an outage.
func serveInOutage(t *testing.T, a firstLoad, ends time.Time, silent bool) *folderWatch {
	t.Helper()
	api := &kindOutage{(&definitionStore{t: t, is: numberedDefinition("")}).serving(), ends, silent}
	o := &operator{log: logr.Discard(), flags: runFlags{crds: crdsApply}}
	o.config = &rest.Config{Host: "http://api", Transport: api, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	var err error
	if o.manager, err = controller.New(o.config, controller.Options{InProcess: true}); err != nil {
		t.Fatal(err)
	}
	w, err := o.serveFirst(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
