package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An authority signs certificates for this machine.
type authority struct {
	t      *testing.T
	parent *x509.Certificate
	key    *ecdsa.PrivateKey
	// pem is its own certificate.
	pem []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.key = a.newKey()
	a.parent = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.pem = a.sign(a.parent, a.key)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) sign(c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, a.parent, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// certify returns a certificate with a number, and its key.
func (a *authority) certify(number int64) (certificate, key []byte) {
	a.t.Helper()
	own := a.newKey()
	der, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(number), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, own), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// mount writes a certificate into a folder as the kubelet does: the files are links into a folder, and one rename replaces both.
func (a *authority) mount(dir string, number int64) {
	a.t.Helper()
	certificate, key := a.certify(number)
	folder := fmt.Sprintf("..certificate-%d", number)
	old, _ := os.Readlink(filepath.Join(dir, "..data")) // there is none the first time
	step := func(err error) {
		a.t.Helper()
		if err != nil {
			a.t.Fatal(err)
		}
	}
	step(os.Mkdir(filepath.Join(dir, folder), 0o700))
	harness.WriteFile(a.t, filepath.Join(dir, folder, "tls.crt"), string(certificate))
	harness.WriteFile(a.t, filepath.Join(dir, folder, "tls.key"), string(key))
	step(os.Symlink(folder, filepath.Join(dir, "..data_tmp")))
	step(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	if old != "" {
		step(os.RemoveAll(filepath.Join(dir, old)))
		return
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		step(os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
}

// trust has the API server trust the authority for the webhooks.
func (a *authority) trust(w *harness.Webhooks) {
	a.t.Helper()
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		ref := harness.Object("admissionregistration.k8s.io/v1", kind, "", w.Configuration)
		u := w.Env.ExpectObject(ref, "to be there", harness.Exists)
		hooks, _ := harness.Field(u, "webhooks").([]any)
		for _, h := range hooks {
			if err := unstructured.SetNestedField(h.(map[string]any), base64.StdEncoding.EncodeToString(a.pem), "clientConfig", "caBundle"); err != nil {
				a.t.Fatal(err)
			}
		}
		w.Env.Patch(ref, map[string]any{"webhooks": hooks})
	}
}

// number returns the number of the certificate that is served at an address.
func (a *authority) number(address string) (int64, error) {
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(a.pem)
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

// The folder is as cert-manager and the kubelet leave it. While the files change, each request is answered.
func TestF29W58CertificatesInAFolderAreReplacedWithoutALostRequest(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "rotatingfolder", webhookBody+"\nadmission: failurePolicy: \"Fail\"\n")
	w, a, dir := s.NewWebhooks(p.Dir), newAuthority(t), t.TempDir()
	address := "127.0.0.1:" + w.Port
	a.mount(dir, 1)
	a.trust(w)
	s.StartOperator(p.Dir, "--webhook-bind-address", address, "--webhook-cert-dir", dir)
	w.Await(invalidThing(p, s, "early"))
	asked, failed := 0, 0
	for number := range int64(4) {
		if number > 0 {
			a.mount(dir, number+1)
		}
		harness.Eventually(t, fmt.Sprint("certificate number ", number+1), func() error {
			for range 10 {
				asked++
				if err := harness.Suite.Admin.Create(t.Context(), p.Thing(s.Env, "asked", nil), client.DryRunAll); err != nil {
					failed++
					t.Errorf("a request is lost: %v", err)
				}
			}
			mustBeRefused(t, harness.Suite.Admin.Create(t.Context(), invalidThing(p, s, "refused"), client.DryRunAll), "components.web.objects.map.data.note", "forbidden")
			got, err := a.number(address)
			if err == nil && got != number+1 {
				err = fmt.Errorf("number %d is served", got)
			}
			return err
		})
	}
	t.Logf("%d requests of %d lost over 4 certificates", failed, asked)
}
