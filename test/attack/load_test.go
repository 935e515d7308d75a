package attack

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// What the operator has to do beside the attacks.
const (
	// memoryLimit is that of the container in config/manager.
	memoryLimit = 512 << 20
	// slowest is how long an edit may take to be followed, but for one in a hundred.
	slowest = 2 * time.Second
)

// A load is how many well-behaved resources there are, for how long they are edited
// while others attack, and how many ConfigMaps of a megabyte those make.
type load struct {
	resources int
	lasts     time.Duration
	megabytes int
}

func loadOfThisRun() load {
	if harness.Long() {
		return load{resources: 200, lasts: 2 * time.Minute, megabytes: 450}
	}
	return load{resources: 30, lasts: 10 * time.Second, megabytes: 30}
}

// keeper is a package whose resource reads a Secret and makes another of it.
const keeper = `
#Spec: text: string | *"hello"

inputs: password: {apiVersion: "v1", kind: "Secret", name: "password"}
components: login: objects: {
	secret: {
		apiVersion: "v1"
		kind:       "Secret"
		metadata: name: "login-\(cr.metadata.name)"
		data: inputs.password.object.data
	}
	note: {
		apiVersion: "v1"
		kind:       "ConfigMap"
		metadata: name: "login-\(cr.metadata.name)"
		data: text: cr.spec.text
	}
}
`

// fan is a package that renders as many objects as its resource says.
const fan = `package hostedfan

import (
	"list"
	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "hostedfan.example.com"
kind:  "Thing"
versions: v1: spec: #Spec
cr: spec: #Spec

#Spec: n: int & >=0 & <=100000

components: fan: objects: {
	for i in list.Range(0, cr.spec.n, 1) {
		"part\(i)": {
			apiVersion: "v1"
			kind:       "ConfigMap"
			metadata: name: "\(cr.metadata.name)-\(i)"
		}
	}
}
`

// password is the Secret value that must not be found anywhere.
const password = "canary-7f3a-password"

// TestHostileTenantsLeaveOthersServed: four tenants do at once, as fast as they can, what
// can be refused before an evaluation.
func TestHostileTenantsLeaveOthersServed(t *testing.T) {
	t.Parallel()
	round := loadOfThisRun()
	s := harness.NewSite(t)
	secret := s.Ref("Secret", "password")
	secret.Object["stringData"] = map[string]any{"password": password}
	s.Create(secret)
	h := newHosted(t, s)
	enforced := h.operator.LimitMemory(memoryLimit)
	began := time.Now()
	good := h.wellBehaved(round.resources)
	for _, cr := range good {
		s.ExpectAllReady(cr)
	}
	t.Logf("%d resources are Ready after %s", len(good), harness.Since(began))

	ctx, cancel := context.WithTimeout(t.Context(), round.lasts)
	defer cancel()
	attacks := h.attack(ctx, round)
	used := h.operator.CPU()
	took := h.edit(ctx, good)
	used = h.operator.CPU() - used
	attacks.wait(t)
	h.expectUnharmed(good)
	if peak := h.operator.PeakMemory(); peak > memoryLimit {
		t.Errorf("the operator had %d MiB", peak>>20)
	} else {
		t.Logf("the operator had at most %d MiB (enforced by the kernel: %t)", peak>>20, enforced)
	}
	t.Logf("the operator used %s of processor time in %s", used.Round(time.Millisecond), round.lasts)
	slices.Sort(took)
	if len(took) == 0 {
		t.Fatal("no edit was followed")
	}
	p99 := took[(len(took)*99+99)/100-1]
	t.Logf("%d edits: median %s, p99 %s, slowest %s", len(took), took[len(took)/2], p99, took[len(took)-1])
	if harness.Long() && p99 > slowest {
		t.Errorf("one in a hundred edits took more than %s", p99)
	}
}

// A hosted is an operator of several kinds that tenants share.
type hosted struct {
	t        *testing.T
	site     *harness.Site
	operator *harness.Operator
	hello    *harness.Small
	keeper   *harness.Small
	fan      *harness.Small
}

// hostedGroup is the group of the WebApps of this test: other tests have their own.
const hostedGroup = "hosted.example.com"

func newHosted(t *testing.T, s *harness.Site) *hosted {
	t.Helper()
	h := &hosted{
		t: t, site: s,
		hello:  harness.NewSmall(t, "hostedhello", hello),
		keeper: harness.NewSmall(t, "hostedkeeper", keeper),
		fan:    &harness.Small{T: t, Name: "hostedfan", Dir: harness.WritePackage(t, "hostedfan", fan)},
	}
	webapp := harness.CopyPackage(t, harness.PackageOf("webapp"), map[string]string{`"example.com"`: `"` + hostedGroup + `"`})
	h.operator = s.Operate(webapp, h.hello.Dir, h.keeper.Dir, h.fan.Dir, harness.Everywhere, harness.Alone, "--health-probe-bind-address", "127.0.0.1:0")
	return h
}

func (h *hosted) webapp(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := harness.Object(hostedGroup+"/v1", "WebApp", namespace, name)
	u.Object["spec"] = spec
	return u
}

// wellBehaved creates resources of three kinds in turn.
func (h *hosted) wellBehaved(n int) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for i := range n {
		name := fmt.Sprintf("good-%d", i)
		var cr *unstructured.Unstructured
		switch i % 3 {
		case 0:
			cr = h.webapp(h.site.Namespace, name, map[string]any{"image": "nginx:1.25", "replicas": int64(1)})
		case 1:
			cr = h.hello.Thing(h.site, name, nil)
		default:
			cr = h.keeper.Thing(h.site, name, nil)
		}
		out = append(out, h.site.Create(cr))
	}
	return out
}

// edit changes one resource after the other, by two people at once, until the context
// ends, and returns how long each change took to be followed.
func (h *hosted) edit(ctx context.Context, good []*unstructured.Unstructured) []time.Duration {
	var mu sync.Mutex
	var took []time.Duration
	var people sync.WaitGroup
	for first := range 2 {
		people.Go(func() {
			for i := first; ctx.Err() == nil; i += 2 {
				d := h.editOne(good[i%len(good)], i)
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	people.Wait()
	return took
}

// editOne changes a resource, and returns how long that took to be followed.
func (h *hosted) editOne(cr *unstructured.Unstructured, nth int) time.Duration {
	spec := map[string]any{"text": fmt.Sprint("text ", nth)}
	if cr.GetKind() == "WebApp" {
		spec = map[string]any{"maxUnavailable": int64(1 + nth/len(cr.GetName())%2), "files": map[string]any{"nth": fmt.Sprint(nth)}}
	}
	changed := h.site.Patch(cr, harness.Spec(spec))
	began := time.Now() // the API server has it, which is under attack as well
	harness.Within(h.t, time.Minute, "an edit of "+cr.GetName()+" to be followed", func() error {
		got, err := harness.Read(h.t.Context(), changed)
		if err != nil {
			return err
		}
		if harness.Field(got, "status", "observedGeneration") != changed.GetGeneration() {
			return fmt.Errorf("it is observed in generation %v, not in %d", harness.Field(got, "status", "observedGeneration"), changed.GetGeneration())
		}
		return nil
	})
	return time.Since(began)
}

// expectUnharmed expects the operator to run as before, what it serves to be as it should,
// and nobody to have learned the password.
func (h *hosted) expectUnharmed(good []*unstructured.Unstructured) {
	h.t.Helper()
	if !h.operator.Running() {
		h.t.Fatal("the operator has ended")
	}
	if code := h.operator.Probe("healthz"); code != 200 {
		h.t.Errorf("healthz answers %d", code)
	}
	for _, cr := range good {
		h.site.ExpectAllReady(cr)
	}
	var said strings.Builder
	for _, kind := range []*unstructured.Unstructured{good[0], good[1], good[2], harness.Object("events.k8s.io/v1", "Event", "", "")} {
		for _, u := range harness.ListEverywhere(h.t, kind.GetAPIVersion(), kind.GetKind()) {
			said.Write(harness.Encode(h.t, u.Object))
		}
	}
	said.WriteString(h.operator.Log.Text())
	said.WriteString(h.operator.Metrics())
	for _, form := range []string{password, base64.StdEncoding.EncodeToString([]byte(password))} {
		if strings.Contains(said.String(), form) {
			h.t.Errorf("the Secret's value is found as %s", form)
		}
	}
}
