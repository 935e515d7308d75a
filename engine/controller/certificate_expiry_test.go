package controller

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	certutil "k8s.io/client-go/util/cert"
	"operetta.dev/test/machine"
)

// A certificate that has expired is an outage of whoever verifies it, and neither ends the process nor needs a restart.
func TestAnExpiredCertificateIsServedAndSaidAndANewOneIsTaken(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		// serve makes the options serve a folder at an address.
		serve func(o *Options, address, dir string)
	}{
		"webhooks": {"the API server refuses each request, or lets it pass, by the failure policy", func(o *Options, address, dir string) {
			o.WebhookAddress, o.WebhookCertDir = address, dir
		}},
		"metrics": {"a scraper loses sight of the operator", func(o *Options, address, dir string) {
			o.MetricsAddress, o.MetricsSecure, o.MetricsCertDir = address, true, dir
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, address := t.TempDir(), freeAddress(t)
			expired := issue(t, dir, "expired.example", -30*time.Minute)
			var log lines
			o := Options{InProcess: true, Log: funcr.New(log.add, funcr.Options{})}
			row.serve(&o, address, dir)
			ended := runUntilEnd(t, o)
			machine.Eventually(t, "the expired certificate", func() bool { return servedName(address) == "expired.example" })
			if err := verified(address, expired); !refusedAsExpired(err) {
				t.Errorf("%s: who verifies it gets the error %v", row.reason, err)
			}
			if err := verified(address, expired); !refusedAsExpired(err) {
				t.Errorf("%s: the second time, who verifies it gets the error %v", row.reason, err)
			}
			want := []string{`"server"="` + name + `" "folder"="` + dir + `"`}
			if diff := cmp.Diff(want, log.about("has expired")); diff != "" {
				t.Errorf("%s: it is said once in a while, however many connect (-want +got):\n%s", row.reason, diff)
			}

			fresh := issue(t, dir, "fresh.example", time.Hour)
			machine.Eventually(t, "the new certificate", func() bool { return servedName(address) == "fresh.example" })
			if err := verified(address, fresh); err != nil {
				t.Errorf("%s: who verifies the new one gets the error %v", row.reason, err)
			}
			select {
			case err := <-ended:
				t.Errorf("%s: the process has ended: %v", row.reason, err)
			default:
			}
		})
	}
}

// lines are lines of a log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(_, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, text)
}

// about returns the keys before the message of the lines that have a text, without its own.
func (l *lines) about(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, line := range l.all {
		if strings.Contains(line, text) {
			_, keys, _ := strings.Cut(line, `"server"=`)
			keys, _, _ = strings.Cut(`"server"=`+keys, ` "expired"=`)
			out = append(out, keys)
		}
	}
	return out
}

// freeAddress returns an address that nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// issue writes a certificate for a name into a folder, which expires after some time, and returns its authority as PEM.
func issue(t *testing.T, dir, name string, expires time.Duration) []byte {
	t.Helper()
	const backdated = time.Hour // the library has each certificate begin that long ago
	certificate, key, err := certutil.GenerateSelfSignedCertKeyWithOptions(certutil.SelfSignedCertKeyOptions{Host: name, MaxAge: expires + backdated})
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{"tls.key": key, "tls.crt": certificate} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate
}

// runUntilEnd runs a manager until the test ends. The channel gets why it ends before.
func runUntilEnd(t *testing.T, o Options) <-chan error {
	t.Helper()
	m, err := New(away, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { ended <- m.Start(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return ended
}

// servedName returns the name for which the certificate at an address is, or "".
func servedName(address string) string {
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	if err != nil {
		return ""
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].DNSNames[0]
}

// verified connects as somebody who trusts an authority.
func verified(address string, authority []byte) error {
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: trusted, ServerName: servedName(address), MinVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	return conn.Close()
}

func refusedAsExpired(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}
