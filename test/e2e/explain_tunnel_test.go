package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"operetta.dev/engine/controller"
	"operetta.dev/test/harness"
)

// startKubelet starts what a kubelet does for kubectl port-forward: it leads the API server to the ports of this machine. It
// returns its own port.
func startKubelet(t *testing.T) int {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/portForward/") {
			http.NotFound(w, r)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
			return
		}
		streams := make(chan httpstream.Stream)
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, replySent <-chan struct{}) error {
			go func() { <-replySent; streams <- stream }()
			return nil
		})
		if conn == nil {
			return
		}
		defer func() { _ = conn.Close() }()
		for {
			select {
			case <-conn.CloseChan():
				return
			case s := <-streams:
				if s.Headers().Get("Streamtype") == "error" {
					_ = s.Close()
					continue
				}
				go lead(s, s.Headers().Get("Port"))
			}
		}
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// lead connects a stream with a port of this machine.
func lead(s httpstream.Stream, port string) {
	defer func() { _ = s.Reset() }()
	to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(to, s); _ = to.(*net.TCPConn).CloseWrite() })
	both.Go(func() { _, _ = io.Copy(s, to); _ = s.Close() })
	both.Wait()
}

// startPod makes a pod on a node whose kubelet leads to this machine, with the port of its metrics.
func (s *env) startPod(name string, metrics string) {
	s.T.Helper()
	node := "node-of-" + s.Namespace
	s.apply(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + node + `","annotations":{"kwok.x-k8s.io/node":"fake"}},"spec":{"unschedulable":true}}`)
	s.T.Cleanup(func() { _, _ = harness.Kubectl(cleanup(s.T), "delete", "node/"+node) })
	s.Kubectl("patch", "node/"+node, "--subresource=status", "--type=merge", "--patch",
		fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, startKubelet(s.T)))
	s.apply(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `","namespace":"` + s.Namespace + `"},"spec":{"nodeName":"` + node +
		`","containers":[{"name":"operator","image":"operetta","ports":[{"name":"metrics","containerPort":` + metrics + `}]}]}}`)
	s.Kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/"+name, "--timeout=60s")
}

// apply applies a manifest.
func (s *env) apply(manifest string) {
	s.T.Helper()
	file := s.T.TempDir() + "/manifest.json"
	harness.WriteFile(s.T, file, manifest)
	s.Kubectl("apply", "-f", file)
}

func TestTheLeaderIsAskedThroughTheAPIServer(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "tunnelled", heldBody)
	o := s.startSecure(p.Dir, "--leader-elect", "--leader-elect-namespace", s.Namespace)
	_, port, err := net.SplitHostPort(o.Address(harness.MetricsServer))
	if err != nil {
		t.Fatal(err)
	}
	s.ExpectResourceReady(s.Create(p.Thing(s.Env, "first", map[string]any{"text": "a"}))) // the operator has listed them
	cr := s.Create(p.Thing(s.Env, "one", map[string]any{"text": "a"}))
	s.ExpectResourceReady(cr)
	resource := "things." + cr.GroupVersionKind().Group + "/one"
	holder, _, _ := strings.Cut(s.Kubectl("get", "lease/"+controller.DefaultLeaderElectionID, "-o", "jsonpath={.spec.holderIdentity}"), "_")

	text, _ := s.operettaAs(s.AdminKubeconfig(), "explain", resource, "--operator-namespace", s.Namespace)
	s.expectParts(text, "ConfigMap/one  ready", "reconciles: not known: the operator in namespace "+s.Namespace, `pods "`+holder+`" not found`)
	s.startPod(holder, port)
	var code int
	harness.Eventually(t, "the address of the node to be known", func() error {
		text, code = s.operettaAs(s.AdminKubeconfig(), "explain", resource, "--operator-namespace", s.Namespace)
		if strings.Contains(text, "no preferred addresses") {
			return harness.ErrNotYet
		}
		return nil
	})
	t.Logf("operetta explain:\n%s", text)
	s.expectParts(text, "ConfigMap/one  ready", "reconciles  ", "the resource: created by ", "watches: Thing, ConfigMap")
	if code != 0 {
		t.Errorf("the exit code is %d", code)
	}

	group := cr.GroupVersionKind().Group
	reads := harness.Rule(group, []any{"get"}, "things")
	for name, row := range map[string]struct {
		reason string
		rules  []any
		parts  []string
	}{
		"no-lease": {"the Lease is not theirs", []any{reads}, []string{"not known: the operator in namespace " + s.Namespace, "which pod leads is in its Lease", "is forbidden", "the resource was written by"}},
		"no-tunnel": {"kubectl port-forward would say the same", []any{reads, harness.Rule("coordination.k8s.io", []any{"get"}, "leases"), harness.Rule("", []any{"get"}, "pods")},
			[]string{"not known: the operator in namespace " + s.Namespace, "its pod cannot be reached", "forbidden"}},
	} {
		x := s.Tenant(name, s.Namespace, row.rules...)
		text, _ := s.operettaAs(x.Kubeconfig, "explain", resource, "--operator-namespace", s.Namespace)
		t.Logf("%s: %s\n%s", name, row.reason, text)
		s.expectParts(text, row.parts...)
	}
	text, _ = s.operettaAs(s.AdminKubeconfig(), "explain", resource, "--operator-namespace", s.Namespace, "--operator-lease", "another")
	s.expectParts(text, "not known: the operator in namespace "+s.Namespace, `"another" not found`)

	standby := s.startSecure(p.Dir, "--leader-elect", "--leader-elect-namespace", s.Namespace).Address(harness.MetricsServer)
	text, _ = s.operettaAs(s.AdminKubeconfig(), "explain", resource, "--operator-address", standby)
	s.expectParts(text, "ConfigMap/one  ready", "not known: the operator at "+standby+" answers 503: this process stands by")
}
