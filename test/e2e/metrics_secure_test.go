package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	certutil "k8s.io/client-go/util/cert"
	"operetta.dev/test/harness"
)

// A scraper reads metrics over TLS, and trusts any certificate.
type scraper struct{ client *http.Client }

func newScraper() scraper {
	return scraper{&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}}
}

// get returns the status code and the body of an answer, and the name in the certificate of the server.
func (s scraper) get(url, token string) (code int, body, server string, err error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, "", "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, "", "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if resp.TLS != nil {
		server = strings.Join(resp.TLS.PeerCertificates[0].DNSNames, ",")
	}
	if resp.StatusCode == http.StatusBadRequest {
		err = nil // the server closes the connection before it has read the request
	}
	return resp.StatusCode, string(b), server, err
}

func TestJ11MetricsAreServedToWhomTheAPIServerAllows(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "guarded", "#Spec: {}\ncomponents: {}\n")
	o := s.startSecure(p.Dir)
	address := o.Address(harness.MetricsServer)

	token := func(name string) string {
		s.Kubectl("create", "serviceaccount", name)
		return strings.TrimSpace(s.Kubectl("create", "token", name))
	}
	allowed, denied := token("scraper"), token("somebody")
	s.allowScraper("scraper")
	endpoint := readConfig[serviceMonitor](t, "prometheus/monitor.yaml").Spec.Endpoints[0]

	rows := map[string]struct {
		reason, url, token string
		code               int
	}{
		"a user who may":         {"the role of config/prometheus, as its ServiceMonitor scrapes", endpoint.Scheme + "://" + address + endpoint.Path, allowed, http.StatusOK},
		"a user who may not":     {"an account of any tenant", "https://" + address + "/metrics", denied, http.StatusForbidden},
		"nobody":                 {"there is no anonymous access", "https://" + address + "/metrics", "", http.StatusUnauthorized},
		"a token of nobody":      {"the API server has not issued it", "https://" + address + "/metrics", "forged", http.StatusInternalServerError},
		"a half of a token":      {"its signature is missing", "https://" + address + "/metrics", allowed[:len(allowed)/2], http.StatusInternalServerError},
		"without TLS":            {"a token must not travel in clear", "http://" + address + "/metrics", allowed, http.StatusBadRequest},
		"profiles":               {"there are none", "https://" + address + "/debug/pprof/", allowed, http.StatusNotFound},
		"a path that looks like": {"only one path has metrics", "https://" + address + "/metrics/", allowed, http.StatusNotFound},
	}
	for name, row := range rows {
		harness.Eventually(t, fmt.Sprintf("%s gets %d", name, row.code), func() error {
			code, body, _, err := newScraper().get(row.url, row.token)
			switch {
			case err != nil:
				return err
			case code != row.code:
				return fmt.Errorf("%s: the code is %d", row.reason, code) // rights take a moment to be known
			case strings.Contains(body, "reconcile_total") && code != http.StatusOK:
				return errors.New("the body has metrics")
			case code == http.StatusOK && !strings.Contains(body, "workqueue_depth"):
				return errors.New("there are no metrics")
			}
			return nil
		})
	}
	lines := 0
	for line := range harness.Lines(o.Log.From(0), "Authentication failed") {
		if lines++; strings.Contains(line, "forged") {
			t.Errorf("the log has a token: %s", line)
		}
	}
	for line := range harness.Lines(o.Log.From(0), "TLS handshake error") {
		t.Errorf("the log has what a stranger has sent: %s", line)
	}
	if lines != 1 {
		t.Errorf("the log has %d lines about forged tokens; anyone could fill it", lines)
	}
}

// allowScraper applies the roles of config/prometheus for an account of the test's namespace, under names that no other test has.
func (s *env) allowScraper(account string) {
	s.T.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Suite.Root, "config/prometheus/monitor.yaml"))
	if err != nil {
		s.T.Fatal(err)
	}
	_, roles, _ := strings.Cut(string(text), "\n---\n") // the cluster has no ServiceMonitors
	const name, subject = "name: operetta-metrics\n", "name: prometheus-k8s\n    namespace: monitoring\n"
	if strings.Count(roles, name) != 3 || strings.Count(roles, subject) != 1 {
		s.T.Fatalf("the roles are not what this test knows:\n%s", roles)
	}
	own := "operetta-metrics-" + s.Namespace
	file := filepath.Join(s.T.TempDir(), "roles.yaml")
	harness.WriteFile(s.T, file, strings.NewReplacer(name, "name: "+own+"\n", subject, "name: "+account+"\n    namespace: "+s.Namespace+"\n").Replace(roles))
	s.Kubectl("apply", "--server-side", "-f", file)
	s.T.Cleanup(func() {
		ctx := context.WithoutCancel(s.T.Context()) // that of the test has ended
		_, _ = harness.Kubectl(ctx, "delete", "clusterrole/"+own, "clusterrolebinding/"+own)
	})
}

func TestTheCertificateOfMetricsIsReplacedWithoutARestart(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "rotated", "#Spec: {}\ncomponents: {}\n")
	dir := t.TempDir()
	issue := func(name string) {
		t.Helper()
		certificate, key, err := certutil.GenerateSelfSignedCertKey(name, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		harness.WriteFile(t, filepath.Join(dir, "tls.key"), string(key))
		harness.WriteFile(t, filepath.Join(dir, "tls.crt"), string(certificate))
	}
	issue("first.example")
	o := s.startSecure(p.Dir, "--metrics-cert-dir", dir)
	url := "https://" + o.Address(harness.MetricsServer) + "/metrics"
	serves := func(name string) {
		t.Helper()
		harness.Eventually(t, "a certificate for "+name, func() error {
			code, _, server, err := newScraper().get(url, "")
			if err == nil && (code != http.StatusUnauthorized || !strings.Contains(server, name)) {
				err = fmt.Errorf("it is for %s, and the code is %d", server, code)
			}
			return err
		})
	}
	serves("first.example")
	issue("second.example")
	serves("second.example")
}
