package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httputil"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/controller/watch"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
	"operetta.dev/test/internal/child"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"
)

// cborGate is the gate of an API server that offers CBOR.
const cborGate = "CBORServingAndStorage"

// planeWithCBOR starts an API server that offers CBOR, or not.
func planeWithCBOR(t *testing.T, offered bool) *controlplane.ControlPlane {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{
		FeatureGates: fmt.Sprintf("%s=%v", cborGate, offered),
		Without:      []controlplane.Part{controlplane.ControllerManager, controlplane.Scheduler, controlplane.Kwok},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	return cp
}

// answersByType counts answers by their content type.
type answersByType struct {
	mu     sync.Mutex
	counts map[string]int
}

func (a *answersByType) note(answer *http.Response) {
	if !strings.Contains(answer.Request.URL.Path, "/namespaces/") && !strings.Contains(answer.Request.URL.Path, "things") {
		return // discovery, and what else is about no object
	}
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	if answer.Request.URL.Query().Get("watch") != "" {
		kind = "watch " + kind
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = map[string]int{}
	}
	a.counts[kind]++
}

// types returns the content types that there were.
func (a *answersByType) types() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.counts))
}

// A notedTransport notes the answers.
type notedTransport struct {
	http.RoundTripper

	by *answersByType
}

// RoundTrip implements http.RoundTripper.
func (n notedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := n.RoundTripper.RoundTrip(r)
	if err == nil {
		n.by.note(answer)
	}
	return answer, err
}

// onlyJSON is a transport whose answers are JSON.
type onlyJSON struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o onlyJSON) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", runtime.ContentTypeJSON)
	return o.RoundTripper.RoundTrip(r)
}

// A cborConnection is a connection to a control plane.
type cborConnection struct {
	watch.Connection

	config *rest.Config
	client *http.Client
	mapper meta.RESTMapper
}

func newCBORConnection(t *testing.T, config *rest.Config) *cborConnection {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := cluster.NewRESTMapper(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	return &cborConnection{config: config, client: httpClient, mapper: mapper}
}

func (c *cborConnection) GetConfig() *rest.Config        { return c.config }
func (c *cborConnection) GetHTTPClient() *http.Client    { return c.client }
func (c *cborConnection) GetScheme() *runtime.Scheme     { return runtime.NewScheme() }
func (c *cborConnection) GetRESTMapper() meta.RESTMapper { return c.mapper }
func (c *cborConnection) GetLogger() logr.Logger         { return logr.Discard() }
func (c *cborConnection) Add(manager.Runnable) error     { return nil }

// newClient returns a client that reads from the API server.
func (c *cborConnection) newClient(t *testing.T) client.Client {
	t.Helper()
	out, err := client.New(c.config, client.Options{HTTPClient: c.client, Scheme: c.GetScheme(), Mapper: c.mapper})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// anythingCRD defines a kind whose objects hold anything.
const anythingCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.anything.example.com}
spec:
  group: anything.example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

// readObjects are objects with what CBOR says in another way than JSON, or more exactly.
var readObjects = map[string]string{
	"numbers":     `{"apiVersion":"anything.example.com/v1","kind":"Thing","metadata":{"name":"NAME"},"spec":{"n":[0,-0,1,-1,1.0,-3.0,0.5,0.1,1e3,1E-3,1e15,1e18,1e20,1e21,1e300,9007199254740993,4611686018427387904,4611686018427387904.0,9223372036854775807,-9223372036854775808,9223372036854775808,18446744073709551616]}}`,
	"nothing":     `{"apiVersion":"anything.example.com/v1","kind":"Thing","metadata":{"name":"NAME"},"spec":{"b":{},"c":[],"d":"","e":[null,{},[]],"f":false,"g":{"h":null}}}`,
	"texts":       `{"apiVersion":"anything.example.com/v1","kind":"Thing","metadata":{"name":"NAME"},"spec":{"a":"ä€😀\u0000\u2028<>&","ä":"\"\\","2026":"2026-01-01T00:00:00Z","b64":"AAECAw=="}}`,
	"bytes":       `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"NAME"},"data":{"none":"","binary":"AP/+gA==","text":"dGV4dA=="}}`,
	"more bytes":  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"},"data":{"a":"ä\n"},"binaryData":{"b":"AP/+gA=="}}`,
	"times":       `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"NAME"},"spec":{"renewTime":"2026-01-01T00:00:00.000001Z","acquireTime":"2026-01-01T00:00:00.500000Z","leaseDurationSeconds":15}}`,
	"quantities":  `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"NAME","annotations":{"a":"1.0"}},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":1}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a","resources":{"limits":{"cpu":"1500m","memory":"1Gi"},"requests":{"cpu":0.1}}}]}}}}`,
	"int or text": `{"apiVersion":"v1","kind":"Service","metadata":{"name":"NAME"},"spec":{"clusterIP":"None","ports":[{"name":"a","port":80,"targetPort":"http"},{"name":"b","port":81,"targetPort":8080}]}}`,
	"many texts":  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"},"data":{"large":"` + strings.Repeat("x", 100_000) + `"}}`,
}

// All that reads has the same from an API server that offers CBOR as from JSON, whether that is written before or after a watch began.
func TestWhatIsReadInCBORIsWhatIsReadInJSON(t *testing.T) {
	t.Parallel()
	for offered, want := range map[bool][]string{
		true: {runtime.ContentTypeCBOR, "watch " + runtime.ContentTypeCBORSequence}, false: {runtime.ContentTypeJSON, "watch " + runtime.ContentTypeJSON},
	} {
		t.Run(fmt.Sprintf("offered %v", offered), func(t *testing.T) {
			t.Parallel()
			config, err := clientcmd.BuildConfigFromFlags("", planeWithCBOR(t, offered).Kubeconfig())
			if err != nil {
				t.Fatal(err)
			}
			config.QPS = -1
			json, noted, by := rest.CopyConfig(config), rest.CopyConfig(config), &answersByType{}
			json.Wrap(func(rt http.RoundTripper) http.RoundTripper { return onlyJSON{rt} })
			noted.Wrap(func(rt http.RoundTripper) http.RoundTripper { return notedTransport{rt, by} })
			w := &cborReads{t: t, reference: newCBORConnection(t, json).newClient(t), connection: newCBORConnection(t, cluster.AcceptCBOR(noted))}
			w.define()
			w.compare()
			if diff := cmp.Diff(want, by.types()); diff != "" {
				t.Errorf("the answers are (-want +got):\n%s", diff)
			}
		})
	}
}

// cborReads reads objects in all ways.
type cborReads struct {
	t          *testing.T
	reference  client.Client
	connection *cborConnection
}

func (w *cborReads) define() {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(anythingCRD), &u.Object); err != nil {
		w.t.Fatal(err)
	}
	if err := w.reference.Create(w.t.Context(), u); err != nil {
		w.t.Fatal(err)
	}
	machine.Eventually(w.t, "the kind is served", func() bool {
		return w.reference.List(w.t.Context(), listOf(harness.Object("anything.example.com/v1", "Thing", "", ""))) == nil
	})
}

func listOf(u *unstructured.Unstructured) *unstructured.UnstructuredList {
	out := &unstructured.UnstructuredList{}
	out.SetAPIVersion(u.GetAPIVersion())
	out.SetKind(u.GetKind() + "List")
	return out
}

// compare compares what is read with what is read in JSON.
func (w *cborReads) compare() {
	w.t.Helper()
	of, err := watch.NewCache(w.connection, "default", cache.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	go func() { _ = of.Start(w.t.Context()) }()
	of.WaitForCacheSync(w.t.Context())
	direct := w.connection.newClient(w.t)
	for _, when := range []string{"before", "after"} { // a list has the first ones, and events have the others
		for what, text := range readObjects {
			name := strings.ReplaceAll(what, " ", "-") + "-" + when
			u := w.write(direct, strings.ReplaceAll(text, "NAME", name))
			want := harness.Object(u.GetAPIVersion(), u.GetKind(), "", "")
			w.must(w.reference.Get(w.t.Context(), client.ObjectKeyFromObject(u), want))
			w.same(what+" as the answer to a write", want, u)
			live := harness.Object(u.GetAPIVersion(), u.GetKind(), "", "")
			w.must(direct.Get(w.t.Context(), client.ObjectKeyFromObject(u), live))
			w.same(what+" live", want, live)
			list := listOf(u)
			w.must(direct.List(w.t.Context(), list, client.MatchingFields{"metadata.name": name}))
			w.same(what+" in a list", want, &list.Items[0])
			cached := harness.Object(u.GetAPIVersion(), u.GetKind(), "", "")
			machine.Eventually(w.t, what+" is in the cache", func() bool {
				return of.Get(w.t.Context(), client.ObjectKeyFromObject(u), cached) == nil
			})
			w.same(what+" in a cache, written "+when, want, cached)
		}
	}
	missing := harness.Object("v1", "Secret", "default", "none")
	if err := direct.Get(w.t.Context(), client.ObjectKeyFromObject(missing), missing); !apierrors.IsNotFound(err) {
		w.t.Errorf("what is not there is an error %v", err)
	}
}

func (w *cborReads) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// write applies an object as it is written: a client would write 1.0 as 1.
func (w *cborReads) write(by client.Client, text string) *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	w.must(yaml.Unmarshal([]byte(text), &u.Object))
	u.SetNamespace("default")
	w.must(by.Patch(w.t.Context(), u, client.RawPatch(types.ApplyPatchType, []byte(text)), client.FieldOwner("test")))
	return u
}

func (w *cborReads) same(what string, want, got *unstructured.Unstructured) {
	w.t.Helper()
	got = got.DeepCopy()
	// The fields of managers are text in a cache, in any order.
	for _, u := range []*unstructured.Unstructured{want, got} {
		for _, m := range u.GetManagedFields() {
			if m.FieldsV1 == nil && what != "" && m.Manager == "test" {
				w.t.Errorf("%s: a manager has no fields", what)
			}
		}
	}
	without := want.DeepCopy()
	unstructured.RemoveNestedField(without.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(got.Object, "metadata", "managedFields")
	if diff := cmp.Diff(without.Object, got.Object); diff != "" {
		w.t.Errorf("%s (-JSON +CBOR):\n%s", what, diff)
	}
}

// cborBody is a package that reads a number that need not be written as one, and what it owns.
const cborBody = `
#Spec: {count: int, large: int, note: string}
live: _
components: {
	config: objects: settings: {
		apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name
		data: {count: "\(cr.spec.count)", large: "\(cr.spec.large)", note: cr.spec.note}
	}
	secret: {
		dependsOn: config: {}
		objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: cr.metadata.name, data: bytes: "AP/+gA=="}
		verify: same: live.secret.secret.data.bytes == "AP/+gA=="
	}
}
`

// A cborProxy is what may be between an operator and an API server that offers CBOR.
type cborProxy struct {
	forward *httputil.ReverseProxy
	answer  func(p *cborProxy, w http.ResponseWriter, r *http.Request)
	n       atomic.Int64
}

// ServeHTTP implements http.Handler.
func (p *cborProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeCBOR) {
		p.answer(p, w, r)
		return
	}
	p.forward.ServeHTTP(w, r)
}

// cborAnswers are what may come of a request that accepts CBOR.
var cborAnswers = map[string]struct {
	reason string
	answer func(p *cborProxy, w http.ResponseWriter, r *http.Request)
	// want are the content types of the answers.
	want []string
}{
	"offered": {
		"an API server with the gate", func(p *cborProxy, w http.ResponseWriter, r *http.Request) { p.forward.ServeHTTP(w, r) },
		[]string{runtime.ContentTypeCBOR, "watch " + runtime.ContentTypeCBORSequence},
	},
	"mixed": {
		"API servers of two versions behind one address",
		func(p *cborProxy, w http.ResponseWriter, r *http.Request) {
			if p.n.Add(1)%2 == 0 {
				r.Header.Set("Accept", runtime.ContentTypeJSON)
			}
			p.forward.ServeHTTP(w, r)
		},
		[]string{runtime.ContentTypeCBOR, runtime.ContentTypeJSON, "watch " + runtime.ContentTypeCBORSequence, "watch " + runtime.ContentTypeJSON},
	},
	"refused": {
		"a proxy that knows what clients of Kubernetes accept",
		func(_ *cborProxy, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotAcceptable) },
		[]string{runtime.ContentTypeJSON, "watch " + runtime.ContentTypeJSON},
	},
	"unsupported": {
		"the same",
		func(_ *cborProxy, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnsupportedMediaType)
		},
		[]string{runtime.ContentTypeJSON, "watch " + runtime.ContentTypeJSON},
	},
	"garbage": {
		"somebody writes CBOR badly",
		func(p *cborProxy, w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				p.forward.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", runtime.ContentTypeCBOR)
			_, _ = w.Write([]byte("\xd9\xd9\xf7\xa1\x1c\x02"))
		},
		nil,
	},
}

// Whatever an API server, or a proxy before it, makes of a client that accepts CBOR, an operator does its work.
func TestAnOperatorGoesOnWhateverAnswersInCBOR(t *testing.T) {
	t.Parallel()
	plane := planeWithCBOR(t, true)
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range cborAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			by, proxy := &answersByType{}, &cborProxy{answer: row.answer}
			var kubeconfig string
			proxy.forward, kubeconfig = proxyTo(t, plane.Kubeconfig(), proxy)
			proxy.forward.ModifyResponse = func(answer *http.Response) error {
				if answer.Request.Header.Get("User-Agent") != "" && !strings.Contains(answer.Request.Header.Get("Accept"), "protobuf") {
					by.note(answer)
				}
				return nil
			}
			cborName := "cbor" + name
			dir := harness.WritePackage(t, cborName, strings.ReplaceAll(harness.TestPackageHead+cborBody, "NAME", cborName))
			runOnCBOR(t, kubeconfig, dir)
			w := &cborWork{t, admin, cborName}
			w.check()
			if got := by.types(); row.want != nil && !subset(row.want, got) {
				t.Errorf("%s: the answers are %q, and not of all types %q", row.reason, got, row.want)
			}
		})
	}
}

func subset(all, of []string) bool {
	return !slices.ContainsFunc(all, func(one string) bool { return !slices.Contains(of, one) })
}

// runOnCBOR runs an operator until the test ends.
func runOnCBOR(t *testing.T, kubeconfig, dir string) {
	t.Helper()
	command := exec.Command(harness.Suite.Operetta, "run", "--kubeconfig", kubeconfig, "--namespace=default", "--metrics-bind-address", harness.AnyPort, "--metrics-secure=false", "--crds=apply", dir)
	command.Dir = harness.Suite.Root
	process, err := child.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("the operator's log:\n%s", process.Log.Tail(60))
		}
	})
}

// cborWork is what an operator has to do.
type cborWork struct {
	t     *testing.T
	admin client.Client
	name  string
}

func (w *cborWork) check() {
	w.t.Helper()
	w.apply(`"count":1.0,"large":9007199254740993,"note":"ä"`)
	w.expect("ConfigMap", "count", "1")
	w.expect("ConfigMap", "large", "9007199254740993")
	w.expect("ConfigMap", "note", "ä")
	w.expect("Secret", "bytes", "AP/+gA==")
	w.apply(`"count":2.0,"large":9007199254740993,"note":"b"`)
	w.expect("ConfigMap", "count", "2")
	gone := harness.Object("v1", "ConfigMap", "default", w.name)
	if err := w.admin.Delete(w.t.Context(), gone); err != nil {
		w.t.Fatal(err)
	}
	w.expect("ConfigMap", "note", "b")
	harness.Eventually(w.t, "the resource to be Ready", func() error {
		u := harness.Object(w.name+".example.com/v1", "Thing", "default", w.name)
		if err := w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase != "Ready" {
			return fmt.Errorf("it is %v", u.Object["status"])
		}
		return nil
	})
}

// apply applies the resource with a spec. The operator installs its kind.
func (w *cborWork) apply(spec string) {
	w.t.Helper()
	text := `{"apiVersion":"` + w.name + `.example.com/v1","kind":"Thing","metadata":{"name":"` + w.name + `","namespace":"default"},"spec":{` + spec + `}}`
	harness.Eventually(w.t, "the resource to be written", func() error {
		u := harness.Object(w.name+".example.com/v1", "Thing", "default", w.name)
		return w.admin.Patch(context.WithoutCancel(w.t.Context()), u, client.RawPatch(types.ApplyPatchType, []byte(text)), client.FieldOwner("test"))
	})
}

func (w *cborWork) expect(kind, key, want string) {
	w.t.Helper()
	harness.Eventually(w.t, kind+" to have "+key+": "+want, func() error {
		u := harness.Object("v1", kind, "default", w.name)
		if err := w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(u.Object, "data", key); got != want {
			return errors.New("it is " + got)
		}
		return nil
	})
}
