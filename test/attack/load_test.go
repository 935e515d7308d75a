package attack

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
)

// The requirements on the operator during the attacks.
const (
	// memoryLimit is the memory limit of the container in config/install.
	memoryLimit = 512 << 20
	// slowest is how long 99 of 100 edits may take to have an effect.
	slowest = 2 * time.Second
)

// A load is the number of well-behaved resources, how long they are edited during the attacks, and how
// many ConfigMaps of a megabyte the attackers create.
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

// keeperBody is a package that copies a Secret.
const keeperBody = `
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

// fanPackage is a package that renders as many objects as the spec says.
const fanPackage = `package hostedfan

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

// password is the Secret value that must not appear anywhere.
const password = "canary-7f3a-password"

// TestHostileTenantsLeaveOthersServed: six tenants send concurrently, as fast as they can, requests that can
// be refused before an evaluation, some that only a limit around it ends, and texts of a package that CUE
// does not end with.
func TestHostileTenantsLeaveOthersServed(t *testing.T) {
	t.Parallel()
	playAttack(t, kindsOfAttacks, (*hostedOperator).mallory, (*hostedOperator).carol, (*hostedOperator).alice,
		(*hostedOperator).dave, (*hostedOperator).erin, (*hostedOperator).frank)
}

// TestHostileEvaluationsLeaveEditsQuick: the tenants ask for evaluations that do not end, or are as expensive as their limit allows,
// and for nothing that keeps the API server busy: an edit waits for the operator alone.
func TestHostileEvaluationsLeaveEditsQuick(t *testing.T) {
	machine.Thorough(t)
	t.Parallel()
	playAttack(t, kindsOfExpensiveAttacks, (*hostedOperator).malloryLabels, (*hostedOperator).erin, (*hostedOperator).frank)
}

// A hostileTenant starts the attacks of one tenant.
type hostileTenant func(h *hostedOperator, ctx context.Context, a *attacks, round load)

// wholeMachine lets one attack play at a time: each is a load for the whole machine, and two of them measure each other.
var wholeMachine sync.Mutex

// playAttack edits resources of well-behaved tenants while others attack, and expects that the edits have their effect soon and that the
// operator stays within its memory. There are as many kinds of attacks at least.
func playAttack(t *testing.T, kinds int, tenants ...hostileTenant) {
	t.Helper()
	wholeMachine.Lock()
	t.Cleanup(wholeMachine.Unlock) // after its operator has ended
	round := loadOfThisRun()
	s := harness.NewEnv(t)
	secret := s.Ref("Secret", "password")
	secret.Object["stringData"] = map[string]any{"password": password}
	s.Create(secret)
	h := newHosted(t, s)
	began := time.Now()
	good := h.wellBehaved(round.resources)
	for _, cr := range good {
		s.ExpectResourceReady(cr)
	}
	t.Logf("%d resources are Ready after %s", len(good), harness.Elapsed(began))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	attacks := newAttacks(kinds)
	for _, tenant := range tenants {
		tenant(h, ctx, attacks, round)
	}
	attacks.endAfter(ctx, round.lasts, cancel)
	used := h.operator.CPU()
	took := h.edit(ctx, watchGenerations(ctx, t, good), good)
	used = h.operator.CPU() - used
	attacks.wait(t)
	h.expectUnharmed(good)
	h.memory.ExpectKept(h.operator)
	t.Logf("the operator used %s of processor time", used.Round(time.Millisecond))
	expectSoon(t, took)
}

// A hostedOperator is an operator of several kinds that tenants share.
type hostedOperator struct {
	t        *testing.T
	site     *harness.Env
	operator *harness.Operator
	hello    *harness.TestPackage
	keeper   *harness.TestPackage
	fan      *harness.TestPackage
	spending *harness.TestPackage
	// hanging is a package that an attacker writes the text of.
	hanging *harness.TestPackage
	memory  harness.MemoryLimit
}

// hostedGroup is the group of the WebApps of this test, which no other test uses.
const hostedGroup = "hosted.example.com"

func newHosted(t *testing.T, s *harness.Env) *hostedOperator {
	t.Helper()
	h := &hostedOperator{
		t: t, site: s,
		hello:    harness.NewTestPackage(t, "hostedhello", helloBody),
		keeper:   harness.NewTestPackage(t, "hostedkeeper", keeperBody),
		spending: harness.NewTestPackage(t, "hostedspending", ""),
		hanging:  harness.NewTestPackage(t, "hostedhanging", helloBody),
		fan:      &harness.TestPackage{T: t, Name: "hostedfan", Dir: harness.WritePackage(t, "hostedfan", fanPackage)},
	}
	webapp := harness.CopyPackage(t, harness.PackageDir("webapp"), map[string]string{`"example.com"`: `"` + hostedGroup + `"`})
	harness.WriteFile(t, filepath.Join(h.spending.Dir, "body.cue"), strings.ReplaceAll(spendingPackage, "NAME", h.spending.Name))
	h.operator, h.memory = s.StartOperatorWithin(memoryLimit, webapp, h.hello.Dir, h.keeper.Dir, h.fan.Dir, h.spending.Dir, h.hanging.Dir,
		harness.Everywhere, harness.Alone, "--health-probe-bind-address", harness.AnyPort, "--evaluation-memory=128Mi", "--package-memory=128Mi")
	return h
}

func (h *hostedOperator) webapp(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := harness.Object(hostedGroup+"/v1", "WebApp", namespace, name)
	u.Object["spec"] = spec
	return u
}

// wellBehaved creates resources of three kinds in turn.
func (h *hostedOperator) wellBehaved(n int) []*unstructured.Unstructured {
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

// expectUnharmed expects that the operator still runs, that its resources are Ready, and that the
// password was not revealed.
func (h *hostedOperator) expectUnharmed(good []*unstructured.Unstructured) {
	h.t.Helper()
	if !h.operator.Running() {
		h.t.Fatal("the operator has ended")
	}
	for _, path := range []string{"healthz", "readyz"} {
		if code := h.operator.Probe(path); code != http.StatusOK {
			h.t.Errorf("%s answers %d", path, code)
		}
	}
	for _, cr := range good {
		h.site.ExpectResourceReady(cr)
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
