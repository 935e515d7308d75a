package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience bounds each wait of a test. On an idle machine each takes a second or
// two; the machine may be busy.
const patience = 90 * time.Second

// tries is how often something with a limit of seconds may take longer: other tests
// and other programs share the machine.
const tries = 6

// site is a namespace with a user who operates it; no two tests share one.
type site struct {
	t          *testing.T
	namespace  string
	user       string
	kubeconfig string
	operator   *operator // the last that was started
}

var (
	sites    atomic.Int32
	unlikely = regexp.MustCompile(`[^a-z0-9]+`)
)

// newSite makes the site of a test.
func newSite(t *testing.T) *site {
	t.Helper()
	name := unlikely.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-")
	namespace := fmt.Sprintf("%.40s-%d", name, sites.Add(1))
	s := &site{t: t, namespace: namespace, user: "operetta:" + namespace}
	ns := object("v1", "Namespace", "", namespace)
	if err := world.admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.kubeconfig, err = world.cp.KubeconfigFor(s.user, "system:masters"); err != nil {
		t.Fatal(err)
	}
	return s
}

// object returns an object with nothing but its identity.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// The API versions of the kinds that tests look at.
var apiVersions = map[string]string{
	"ConfigMap": "v1", "Secret": "v1", "ServiceAccount": "v1", "Service": "v1", "Pod": "v1", "PersistentVolumeClaim": "v1",
	"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1", "Ingress": "networking.k8s.io/v1",
	"HorizontalPodAutoscaler": "autoscaling/v2", "PodDisruptionBudget": "policy/v1",
	"WebApp": "example.com/v1",
}

// ref returns an object of the site's namespace with nothing but its identity.
func (s *site) ref(kind, name string) *unstructured.Unstructured {
	s.t.Helper()
	version, ok := apiVersions[kind]
	if !ok {
		s.t.Fatalf("no API version is known for %s", kind)
	}
	return object(version, kind, s.namespace, name)
}

// webapp returns a WebApp.
func (s *site) webapp(name string, spec map[string]any) *unstructured.Unstructured {
	u := s.ref("WebApp", name)
	u.Object["spec"] = spec
	return u
}

// create creates an object as the admin.
func (s *site) create(u *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	if err := world.admin.Create(s.t.Context(), u); err != nil {
		s.t.Fatal(err)
	}
	return u
}

// delete deletes an object as the admin.
func (s *site) delete(u *unstructured.Unstructured) {
	s.t.Helper()
	if err := world.admin.Delete(s.t.Context(), u); err != nil {
		s.t.Fatal(err)
	}
}

// get reads an object that has to exist.
func (s *site) get(kind, name string) *unstructured.Unstructured {
	s.t.Helper()
	u, err := s.find(kind, name)
	if err != nil {
		s.t.Fatal(err)
	}
	if u == nil {
		s.t.Fatalf("%s %s/%s does not exist", kind, s.namespace, name)
	}
	return u
}

// find reads an object, or returns nil when it does not exist.
func (s *site) find(kind, name string) (*unstructured.Unstructured, error) {
	s.t.Helper()
	return read(s.t.Context(), s.ref(kind, name))
}

func read(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u = u.DeepCopy()
	err := world.admin.Get(ctx, client.ObjectKeyFromObject(u), u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// patch changes an object by a JSON merge patch as the admin.
func (s *site) patch(u *unstructured.Unstructured, patch any) *unstructured.Unstructured {
	s.t.Helper()
	u = u.DeepCopy()
	if err := world.admin.Patch(s.t.Context(), u, client.RawPatch(types.MergePatchType, encode(s.t, patch))); err != nil {
		s.t.Fatal(err)
	}
	return u
}

// jsonPatch changes an object by a JSON patch as the admin.
func (s *site) jsonPatch(u *unstructured.Unstructured, operations ...map[string]any) {
	s.t.Helper()
	if err := world.admin.Patch(s.t.Context(), u.DeepCopy(), client.RawPatch(types.JSONPatchType, encode(s.t, operations))); err != nil {
		s.t.Fatal(err)
	}
}

// spec returns a merge patch of a spec.
func spec(fields map[string]any) map[string]any { return map[string]any{"spec": fields} }

// annotation returns a merge patch of one annotation.
func annotation(key string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// field returns a field of an object, or nil.
func field(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

// condition returns a condition of an object as a map, which is empty if there is none.
func condition(u *unstructured.Unstructured, kind string) map[string]any {
	list, _ := field(u, "status", "conditions").([]any)
	for _, c := range list {
		if m, _ := c.(map[string]any); m["type"] == kind {
			return m
		}
	}
	return map[string]any{}
}

// ready returns nil when a custom resource is Ready for its current generation.
func ready(u *unstructured.Unstructured) error {
	c := condition(u, "Ready")
	if c["status"] == "True" && c["observedGeneration"] == u.GetGeneration() {
		return nil
	}
	return fmt.Errorf("Ready is %v of generation %v, not of %d: %v: %v", c["status"], c["observedGeneration"], u.GetGeneration(), c["reason"], c["message"])
}

// expectReady waits until a WebApp is Ready, and returns it.
func (s *site) expectReady(name string) *unstructured.Unstructured {
	s.t.Helper()
	return s.expectAllReady(s.ref("WebApp", name))
}

// expectAllReady waits until a custom resource is Ready. All else that its status
// says has to agree with that (D5).
func (s *site) expectAllReady(u *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	u = s.expectThat(u, "to be Ready", ready)
	for _, kind := range []string{"Reconciling", "Stalled"} {
		if c := condition(u, kind); c["status"] != "False" || c["observedGeneration"] != u.GetGeneration() || c["message"] != "" {
			s.t.Errorf("D5: %s is Ready and %s is %v", u.GetName(), kind, c)
		}
	}
	if field(u, "status", "phase") != "Ready" || field(u, "status", "observedGeneration") != u.GetGeneration() {
		s.t.Errorf("D5: %s is Ready, its phase %v and its observedGeneration %v", u.GetName(), field(u, "status", "phase"), field(u, "status", "observedGeneration"))
	}
	return u
}

// expectNotReady waits for a Ready condition that is not true for a reason, and
// whose message has all parts. It returns the message.
func (s *site) expectNotReady(u *unstructured.Unstructured, reason string, parts ...string) string {
	s.t.Helper()
	u = s.expectThat(u, "not to be Ready because of "+reason, func(u *unstructured.Unstructured) error {
		c := condition(u, "Ready")
		message, _ := c["message"].(string)
		if c["status"] == "False" && c["reason"] == reason && c["observedGeneration"] == u.GetGeneration() && containsAll(message, parts) {
			return nil
		}
		return fmt.Errorf("Ready is %v: %v: %v; wanted %s with %q", c["status"], c["reason"], c["message"], reason, parts)
	})
	return condition(u, "Ready")["message"].(string)
}

// expectThat waits until an object exists and passes a check, and returns it.
func (s *site) expectThat(u *unstructured.Unstructured, what string, check func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	s.t.Helper()
	var got *unstructured.Unstructured
	eventually(s.t, fmt.Sprintf("%s %s %s", u.GetKind(), u.GetName(), what), func() (err error) {
		got, err = read(s.t.Context(), u)
		if err == nil && got == nil {
			err = fmt.Errorf("it does not exist")
		}
		if err == nil {
			err = check(got)
		}
		return err
	})
	return got
}

// expectGone waits until an object does not exist.
func (s *site) expectGone(u *unstructured.Unstructured) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("the end of %s %s", u.GetKind(), u.GetName()), func() error {
		got, err := read(s.t.Context(), u)
		if err == nil && got != nil {
			err = fmt.Errorf("it exists, finalizers %v, deleted at %v, status %s", got.GetFinalizers(), got.GetDeletionTimestamp(), encode(s.t, got.Object["status"]))
		}
		return err
	})
}

// expectEvent waits for an Event about an object, and returns its note.
func (s *site) expectEvent(about, reason string, parts ...string) string {
	s.t.Helper()
	var found string
	eventually(s.t, fmt.Sprintf("event %s about %s with %q", reason, about, parts), func() error {
		var seen []string
		for _, e := range s.list("events.k8s.io/v1", "Event") {
			note, _ := e.Object["note"].(string)
			if field(&e, "regarding", "name") != about {
				continue
			}
			if e.Object["reason"] == reason && containsAll(note, parts) {
				found = note
				return nil
			}
			seen = append(seen, fmt.Sprintf("%v: %s", e.Object["reason"], note))
		}
		return fmt.Errorf("there are only %q", seen)
	})
	return found
}

// list returns the objects of a kind in the site's namespace.
func (s *site) list(apiVersion, kind string) []unstructured.Unstructured {
	s.t.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
	if err := world.admin.List(s.t.Context(), l, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	return l.Items
}

// eventually polls until check is nil, and fails the test after patience.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	within(t, patience, what, check)
}

// within polls until check is nil, for a limited time, and returns how long it took.
func within(t *testing.T, limit time.Duration, what string, check func() error) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			t.Fatalf("waited %s for %s: %v", limit, what, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(40 * time.Millisecond):
		}
	}
}

// since returns how long ago a time is, as it is logged.
func since(began time.Time) time.Duration { return time.Since(began).Round(time.Millisecond) }

// kubectl runs kubectl as the admin and returns its output.
func kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, world.cp.Kubectl(), append([]string{"--kubeconfig=" + world.cp.Kubeconfig()}, args...)...)
	// kubectl caches discovery in the home folder.
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(world.operetta))
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w%s", strings.Join(args, " "), err, stderrOf(err))
	}
	return strings.TrimSpace(string(out)), err
}

// kubectl runs kubectl on the site's namespace; it has to succeed.
func (s *site) kubectl(args ...string) string {
	s.t.Helper()
	out, err := kubectl(s.t.Context(), append([]string{"--namespace=" + s.namespace}, args...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// errNotYet is the error of a check that has nothing better to say.
var errNotYet = errors.New("not yet")

// listFrom returns the options of a watch that begins at a version.
func listFrom(resourceVersion string) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: resourceVersion}
}

// component returns what a WebApp's status says about a component.
func component(cr *unstructured.Unstructured, name string) map[string]any {
	list, _ := field(cr, "status", "components").([]any)
	for _, c := range list {
		if m, _ := c.(map[string]any); m["name"] == name {
			return m
		}
	}
	return map[string]any{}
}

// exists is the check of an object that has to be there and no more.
func exists(*unstructured.Unstructured) error { return nil }
