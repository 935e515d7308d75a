package harness

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
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Timeout limits each wait of a test. On an idle machine a wait takes a second or two, but the machine
// may be busy, and then it is longer: maxTimeout limits all waits.
const (
	Timeout    = 90 * time.Second
	maxTimeout = 5 * time.Minute
)

// Tries is how often a test repeats a measurement that exceeds its limit of a few seconds, or by how much
// it multiplies the limit, because other tests and programs share the machine. See Fastest.
const Tries = 6

// Env is the environment of one test: a namespace, and a ServiceAccount as whom its operators act, with the roles that operetta rbac
// prints for their packages and flags.
type Env struct {
	T         *testing.T
	Namespace string
	// User is the ServiceAccount in the audit log, and Kubeconfig has its credentials.
	User       string
	Kubeconfig string
	// Binary is another binary than the one under test; "" is that one.
	Binary   string
	Operator *Operator // the last one that was started

	served []*TestPackage // those that are objects of the cluster
	// account is the name of the ServiceAccount, and roles has what it may do, unless the test sees to its rights itself.
	account   string
	roles     *roles
	ownRights bool
	// clusterRoles says that operators of some namespaces have their roles everywhere.
	clusterRoles bool
	refusals     *refusals
}

var (
	namespaces atomic.Int32
	// Unlikely matches characters that are not allowed in a name.
	Unlikely = regexp.MustCompile(`[^a-z0-9]+`)
)

// NewEnv creates the environment of a test.
func NewEnv(t *testing.T) *Env {
	t.Helper()
	name := Unlikely.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-")
	return NewEnvIn(t, fmt.Sprintf("%.40s-%d", name, namespaces.Add(1)))
}

// NewEnvIn creates the environment of a test that needs a namespace of a certain name.
func NewEnvIn(t *testing.T, namespace string) *Env {
	t.Helper()
	s := &Env{T: t, Namespace: namespace, roles: newRoles(t), refusals: newRefusals(t)}
	ns := Object("v1", "Namespace", "", namespace)
	if err := Suite.Admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.leaveNoWork)
	if Suite.administrators != "" {
		s.AsAdministrator(Suite.administrators)
		return s
	}
	s.actAsAccount(defaultAccount)
	return s
}

// leaveNoWork removes what would go on costing requests as long as the control plane lives: the controller manager
// looks at each autoscaler every two seconds, and each operator that starts at each package. The operators of the test
// have ended.
func (s *Env) leaveNoWork() {
	s.refusals.check(s)
	s.roles.remove(s.Namespace)
	for _, p := range s.served {
		p.forget()
	}
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	of := Object(APIVersions["HorizontalPodAutoscaler"], "HorizontalPodAutoscaler", "", "")
	if err := Suite.Admin.DeleteAllOf(ctx, of, client.InNamespace(s.Namespace)); err != nil {
		s.T.Logf("removing autoscalers: %v", err)
	}
}

// Object returns an object with only its identity.
func Object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// APIVersions are the API versions of the kinds that tests use.
var APIVersions = map[string]string{
	"ConfigMap": "v1", "Secret": "v1", "ServiceAccount": "v1", "Service": "v1", "Pod": "v1", "PersistentVolumeClaim": "v1",
	"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1", "Ingress": "networking.k8s.io/v1",
	"HorizontalPodAutoscaler": "autoscaling/v2", "PodDisruptionBudget": "policy/v1",
	"WebApp": "example.com/v1",
}

// Ref returns an object of the test's namespace with only its identity.
func (s *Env) Ref(kind, name string) *unstructured.Unstructured {
	s.T.Helper()
	version, ok := APIVersions[kind]
	if !ok {
		s.T.Fatalf("no API version is known for %s", kind)
	}
	return Object(version, kind, s.Namespace, name)
}

// Webapp returns a WebApp.
func (s *Env) Webapp(name string, spec map[string]any) *unstructured.Unstructured {
	u := s.Ref("WebApp", name)
	u.Object["spec"] = spec
	return u
}

// Create creates an object as the admin.
func (s *Env) Create(u *unstructured.Unstructured) *unstructured.Unstructured {
	s.T.Helper()
	if err := Suite.Admin.Create(s.T.Context(), u); err != nil {
		s.T.Fatal(err)
	}
	return u
}

// Delete deletes an object as the admin.
func (s *Env) Delete(u *unstructured.Unstructured) {
	s.T.Helper()
	if err := Suite.Admin.Delete(s.T.Context(), u); err != nil {
		s.T.Fatal(err)
	}
}

// Get reads an object that has to exist.
func (s *Env) Get(kind, name string) *unstructured.Unstructured {
	s.T.Helper()
	u, err := s.Lookup(kind, name)
	if err != nil {
		s.T.Fatal(err)
	}
	if u == nil {
		s.T.Fatalf("%s %s/%s does not exist", kind, s.Namespace, name)
	}
	return u
}

// Lookup reads an object, or returns nil when it does not exist.
func (s *Env) Lookup(kind, name string) (*unstructured.Unstructured, error) {
	s.T.Helper()
	return GetOrNil(s.T.Context(), s.Ref(kind, name))
}

// GetOrNil returns an object of the API server, or nil when it does not exist.
func GetOrNil(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u = u.DeepCopy()
	err := Suite.Admin.Get(ctx, client.ObjectKeyFromObject(u), u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// Patch changes an object by a JSON merge patch as the admin.
func (s *Env) Patch(u *unstructured.Unstructured, patch any) *unstructured.Unstructured {
	s.T.Helper()
	u = u.DeepCopy()
	if err := Suite.Admin.Patch(s.T.Context(), u, client.RawPatch(types.MergePatchType, Encode(s.T, patch))); err != nil {
		s.T.Fatal(err)
	}
	return u
}

// JSONPatch changes an object by a JSON patch as the admin.
func (s *Env) JSONPatch(u *unstructured.Unstructured, operations ...map[string]any) {
	s.T.Helper()
	if err := Suite.Admin.Patch(s.T.Context(), u.DeepCopy(), client.RawPatch(types.JSONPatchType, Encode(s.T, operations))); err != nil {
		s.T.Fatal(err)
	}
}

// Spec returns a merge patch of a spec.
func Spec(fields map[string]any) map[string]any { return map[string]any{"spec": fields} }

// Annotation returns a merge patch of one annotation.
func Annotation(key string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}
}

// Encode returns a value as JSON.
func Encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Field returns a field of an object, or nil.
func Field(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

// Condition returns a condition of an object as a map, which is empty if there is none.
func Condition(u *unstructured.Unstructured, kind string) map[string]any {
	list, _ := Field(u, "status", "conditions").([]any)
	for _, c := range list {
		if m, _ := c.(map[string]any); m["type"] == kind {
			return m
		}
	}
	return map[string]any{}
}

// Ready returns nil when a custom resource is Ready for its current generation.
func Ready(u *unstructured.Unstructured) error {
	c := Condition(u, "Ready")
	if c["status"] == "True" && c["observedGeneration"] == u.GetGeneration() {
		return nil
	}
	return fmt.Errorf("Ready is %v of generation %v, not of %d: %v: %v", c["status"], c["observedGeneration"], u.GetGeneration(), c["reason"], c["message"])
}

// ExpectReady waits until a WebApp is Ready, and returns it.
func (s *Env) ExpectReady(name string) *unstructured.Unstructured {
	s.T.Helper()
	return s.ExpectResourceReady(s.Ref("WebApp", name))
}

// ExpectResourceReady waits until a custom resource is Ready, and returns it. The other conditions,
// the phase and the observedGeneration must agree (D5).
func (s *Env) ExpectResourceReady(u *unstructured.Unstructured) *unstructured.Unstructured {
	s.T.Helper()
	u = s.ExpectObject(u, "to be Ready", Ready)
	for _, kind := range []string{"Reconciling", "Stalled"} {
		if c := Condition(u, kind); c["status"] != "False" || c["observedGeneration"] != u.GetGeneration() || c["message"] != "" {
			s.T.Errorf("D5: %s is Ready and %s is %v", u.GetName(), kind, c)
		}
	}
	if Field(u, "status", "phase") != "Ready" || Field(u, "status", "observedGeneration") != u.GetGeneration() {
		s.T.Errorf("D5: %s is Ready, its phase %v and its observedGeneration %v", u.GetName(), Field(u, "status", "phase"), Field(u, "status", "observedGeneration"))
	}
	return u
}

// ExpectNotReady waits until the Ready condition is False with a reason and a message that contains all
// parts. It returns the message.
func (s *Env) ExpectNotReady(u *unstructured.Unstructured, reason string, parts ...string) string {
	s.T.Helper()
	u = s.ExpectObject(u, "not to be Ready because of "+reason, func(u *unstructured.Unstructured) error {
		c := Condition(u, "Ready")
		message, _ := c["message"].(string)
		if c["status"] == "False" && c["reason"] == reason && c["observedGeneration"] == u.GetGeneration() && ContainsAll(message, parts) {
			return nil
		}
		return fmt.Errorf("Ready is %v: %v: %v; wanted %s with %q", c["status"], c["reason"], c["message"], reason, parts)
	})
	message, _ := Condition(u, "Ready")["message"].(string)
	return message
}

// ExpectObject waits until an object exists and passes a check, and returns it.
func (s *Env) ExpectObject(u *unstructured.Unstructured, what string, check func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	s.T.Helper()
	var got *unstructured.Unstructured
	Eventually(s.T, fmt.Sprintf("%s %s %s", u.GetKind(), u.GetName(), what), func() (err error) {
		got, err = GetOrNil(s.T.Context(), u)
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

// ExpectGone waits until an object does not exist.
func (s *Env) ExpectGone(u *unstructured.Unstructured) {
	s.T.Helper()
	Eventually(s.T, fmt.Sprintf("the end of %s %s", u.GetKind(), u.GetName()), func() error {
		got, err := GetOrNil(s.T.Context(), u)
		if err == nil && got != nil {
			err = fmt.Errorf("it exists, finalizers %v, deleted at %v, status %s", got.GetFinalizers(), got.GetDeletionTimestamp(), Encode(s.T, got.Object["status"]))
		}
		return err
	})
}

// ExpectEvent waits for an Event about an object, and returns its note.
func (s *Env) ExpectEvent(about, reason string, parts ...string) string {
	s.T.Helper()
	var found string
	Eventually(s.T, fmt.Sprintf("event %s about %s with %q", reason, about, parts), func() error {
		var seen []string
		for _, e := range s.List("events.k8s.io/v1", "Event") {
			note, _ := e.Object["note"].(string)
			if Field(&e, "regarding", "name") != about {
				continue
			}
			if e.Object["reason"] == reason && ContainsAll(note, parts) {
				found = note
				return nil
			}
			seen = append(seen, fmt.Sprintf("%v: %s", e.Object["reason"], note))
		}
		return fmt.Errorf("there are only %q", seen)
	})
	return found
}

// ListEverywhere returns the objects of a kind in all namespaces.
func ListEverywhere(t *testing.T, apiVersion, kind string) []unstructured.Unstructured {
	t.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
	if err := Suite.Admin.List(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return l.Items
}

// List returns the objects of a kind in the test's namespace.
func (s *Env) List(apiVersion, kind string) []unstructured.Unstructured {
	s.T.Helper()
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
	if err := Suite.Admin.List(s.T.Context(), l, client.InNamespace(s.Namespace)); err != nil {
		s.T.Fatal(err)
	}
	return l.Items
}

// Eventually polls until check returns nil, and fails the test after Timeout.
func Eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	Within(t, Timeout, what, check)
}

// The limits of the interval between two polls. It is a sixth of the time waited so far, so that many
// tests in parallel do not keep the API server busy with polls.
const (
	minPollInterval = 40 * time.Millisecond
	maxPollInterval = 500 * time.Millisecond
	pollShare       = 6
)

// Within polls until check returns nil, and returns how long it took. It fails the test after a limit,
// which is longer on a busy machine, but no longer than maxTimeout for that reason.
func Within(t *testing.T, limit time.Duration, what string, check func() error) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			return time.Since(began)
		}
		if took := time.Since(began); took > limit && took > min(machine.Limit(limit), maxTimeout) {
			t.Fatalf("waited %s for %s: %v", took.Round(time.Millisecond), what, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(min(max(time.Since(began)/pollShare, minPollInterval), maxPollInterval)):
		}
	}
}

// ExpectWithin fails a test if something took longer than a limit, which is longer on a busy machine.
func ExpectWithin(t *testing.T, limit time.Duration, what string, took time.Duration) {
	t.Helper()
	if took > machine.Limit(limit) {
		t.Errorf("%s took %s, not at most %s", what, took.Round(time.Millisecond), limit)
	}
}

// Fastest measures something at least twice, and up to Tries times while it takes longer than a limit,
// because the machine may be busy at that moment. The fastest counts.
func Fastest(t *testing.T, limit time.Duration, what string, measure func(try int) time.Duration) {
	t.Helper()
	best := measure(0)
	for try := 1; try < 2 || (best > limit && try < Tries); try++ {
		best = min(best, measure(try))
	}
	ExpectWithin(t, limit, what, best)
}

// Elapsed returns the time since began, rounded for the log.
func Elapsed(began time.Time) time.Duration { return time.Since(began).Round(time.Millisecond) }

// Kubectl runs kubectl as the admin and returns its output.
func Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, Suite.ControlPlane.Kubectl(), append([]string{"--kubeconfig=" + Suite.ControlPlane.Kubeconfig()}, args...)...)
	// kubectl caches discovery in the home folder.
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(Suite.Operetta))
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w%s", strings.Join(args, " "), err, StderrOf(err))
	}
	return strings.TrimSpace(string(out)), err
}

// Kubectl runs kubectl on the test's namespace; it has to succeed.
func (s *Env) Kubectl(args ...string) string {
	s.T.Helper()
	out, err := Kubectl(s.T.Context(), append([]string{"--namespace=" + s.Namespace}, args...)...)
	if err != nil {
		s.T.Fatal(err)
	}
	return out
}

// ErrNotYet is the error of a check that has no details to report.
var ErrNotYet = errors.New("not yet")

// WatchFrom returns the options of a watch that begins at a resource version.
func WatchFrom(resourceVersion string) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: resourceVersion}
}

// Component returns a component of a resource's status, which is empty if there is none.
func Component(cr *unstructured.Unstructured, name string) map[string]any {
	list, _ := Field(cr, "status", "components").([]any)
	for _, c := range list {
		if m, _ := c.(map[string]any); m["name"] == name {
			return m
		}
	}
	return map[string]any{}
}

// Exists is a check for ExpectObject that accepts every object.
func Exists(*unstructured.Unstructured) error { return nil }
