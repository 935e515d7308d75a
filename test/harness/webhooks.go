package harness

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The ports for FreePort. The system gives those from 32768 on to connections, which may take a port between the moment when it
// is chosen and the one when an operator listens to it. A control plane has those from 20000 on.
const (
	firstFreePort = 10_000
	freePorts     = 10_000
)

// FreePort returns a port that is free now, that no connection takes, and that no other test gets before this one has ended, of any
// process: until an operator listens to it, another test may find it free. The port of UDP with the same number, which nobody uses,
// says that it is taken.
func FreePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(firstFreePort + rand.IntN(freePorts))
		address := net.JoinHostPort("127.0.0.1", port)
		taken, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			taken.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { taken.Close() })
		return port
	}
	t.Fatal("no port is free")
	return ""
}

// Webhooks are the webhooks of one operator, which the API server calls on this machine.
type Webhooks struct {
	Env  *Env
	Port string
	// Configuration is the name of both configurations.
	Configuration string
	account       string
	// roles are those that an operator needs for the webhooks, and their bindings.
	roles []*unstructured.Unstructured
}

// webhookKinds are the kinds of the configurations of webhooks.
var webhookKinds = []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}

// NewWebhooks creates what `operetta install --webhooks` prints of a package for the API server and for the
// certificate, with the port of this machine in place of a Service.
func (s *Env) NewWebhooks(dir string) *Webhooks {
	s.T.Helper()
	w := &Webhooks{Env: s, Port: FreePort(s.T), account: s.Namespace + "/hooked"}
	cmd := exec.CommandContext(s.T.Context(), Suite.Operetta, "install", dir, "--webhooks", "--namespace", s.Namespace, "--service-account", w.account)
	cmd.Dir = Suite.Root
	out, err := cmd.Output()
	if err != nil {
		s.T.Fatalf("%v%s", err, StderrOf(err))
	}
	for _, u := range Decode(s.T, out) {
		switch u.GetKind() {
		case webhookKinds[0], webhookKinds[1]:
			w.redirect(u)
			s.Create(u)
		case "Secret":
			s.Create(u)
		case "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding":
			if !strings.HasPrefix(u.GetName(), "operetta:") { // those are the roles of the packages
				w.roles = append(w.roles, u)
			}
		}
	}
	s.T.Cleanup(w.remove)
	s.roles.addWebhooks(w)
	return w
}

// Redirect has the webhooks of an installation, which has been applied, called on this machine. It changes the
// configurations among its objects.
func (s *Env) Redirect(objects []*unstructured.Unstructured, account string) *Webhooks {
	s.T.Helper()
	w := &Webhooks{Env: s, Port: FreePort(s.T), account: account}
	s.T.Cleanup(w.remove)
	for _, u := range objects {
		if slices.Contains(webhookKinds, u.GetKind()) {
			w.redirect(u)
			s.Patch(u, map[string]any{"webhooks": u.Object["webhooks"]})
		}
	}
	return w
}

// remove deletes the configurations, which are in no namespace.
func (w *Webhooks) remove() {
	for _, kind := range webhookKinds {
		cmd := exec.Command(Suite.ControlPlane.Kubectl(), "--kubeconfig="+Suite.ControlPlane.Kubeconfig(), "delete", "--ignore-not-found", kind, w.Configuration)
		if out, err := cmd.CombinedOutput(); err != nil {
			w.Env.T.Logf("deleting %s %s: %v: %s", kind, w.Configuration, err, out)
		}
	}
}

// redirect has the webhooks of a configuration called on this machine.
func (w *Webhooks) redirect(u *unstructured.Unstructured) {
	w.Env.T.Helper()
	w.Configuration = u.GetName()
	hooks, _ := Field(u, "webhooks").([]any)
	if len(hooks) == 0 {
		w.Env.T.Fatalf("%s %s has no webhooks", u.GetKind(), u.GetName())
	}
	for _, h := range hooks {
		hook, _ := h.(map[string]any)
		path, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path")
		hook["clientConfig"] = map[string]any{"url": "https://127.0.0.1:" + w.Port + path}
	}
}

// Secret returns the namespace and the name of the Secret with the certificate.
func (w *Webhooks) Secret() (namespace, name string) {
	namespace, name, _ = strings.Cut(w.account+"-webhooks", "/")
	return namespace, name
}

// Flags are the flags of an operator that serves the webhooks.
func (w *Webhooks) Flags() []string {
	namespace, name := w.Secret()
	return []string{"--webhook-bind-address", "127.0.0.1:" + w.Port, "--webhook-secret", namespace + "/" + name, "--webhook-configuration", w.Configuration}
}

// Await waits until the API server calls the webhooks: they refuse a resource.
func (w *Webhooks) Await(invalid *unstructured.Unstructured) {
	w.Env.T.Helper()
	Eventually(w.Env.T, "the webhooks to refuse "+invalid.GetName(), func() error {
		err := Suite.Admin.Create(w.Env.T.Context(), invalid.DeepCopy(), client.DryRunAll)
		if err == nil {
			return errors.New("it is accepted")
		}
		if !strings.Contains(err.Error(), "denied the request") {
			return err
		}
		return nil
	})
}

// Decode returns the objects of a text in YAML.
func Decode(t *testing.T, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}

// Warned is a client of the admin, and the warnings that it got.
type Warned struct {
	client.Client

	mu       sync.Mutex
	warnings []string
}

// NewWarned returns a client that keeps warnings.
func NewWarned(t *testing.T) *Warned {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", Suite.ControlPlane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	w := &Warned{}
	config.QPS, config.WarningHandler = -1, w
	if w.Client, err = client.New(config, client.Options{Scheme: runtime.NewScheme()}); err != nil {
		t.Fatal(err)
	}
	return w
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *Warned) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, text)
}

// Take returns the warnings since the last call.
func (w *Warned) Take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.warnings
	w.warnings = nil
	return out
}
