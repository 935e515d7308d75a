package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority is the certificate authority of one control plane. Its key stays in
// memory, so identities can be made for as long as the owner lives.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// pair is a certificate and its key, both PEM.
type pair struct{ cert, key []byte }

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate("operetta-controlplane-ca")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, pem: encode("CERTIFICATE", der)}, nil
}

// certificate is the part common to all: a month long, from an hour ago in case the clock is set back.
func certificate(name string, groups ...string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		// A random serial, since the same name may be signed twice.
		SerialNumber: randomSerial(),
		Subject:      pkix.Name{CommonName: name, Organization: groups},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(30 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func randomSerial() *big.Int {
	var b [16]byte
	// rand.Read never fails: it ends the process instead.
	_, _ = rand.Read(b[:])
	return new(big.Int).SetBytes(b[:])
}

// serving signs a certificate for servers on this machine and for the names that
// pods would use.
func (a *authority) serving() (pair, error) {
	template := certificate("kube-apiserver")
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	return a.sign(template)
}

// client signs the identity of a user who is a member of groups.
func (a *authority) client(user string, groups ...string) (pair, error) {
	template := certificate(user, groups...)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

func (a *authority) sign(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign certificate for %q: %w", template.Subject.CommonName, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{cert: encode("CERTIFICATE", der), key: encode("EC PRIVATE KEY", keyDER)}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// tls is the client configuration of an identity.
func (a *authority) tls(p pair) (*tls.Config, error) {
	cert, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

// kubeconfig is a self-contained kubeconfig file for an identity. It is JSON, as
// every client that reads YAML reads it.
func (a *authority) kubeconfig(server, user string, p pair) ([]byte, error) {
	const name = "operetta-controlplane"
	type object = map[string]any
	return json.MarshalIndent(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"clusters": []object{{"name": name, "cluster": object{
			"server": server, "certificate-authority-data": a.pem,
		}}},
		"users": []object{{"name": user, "user": object{
			"client-certificate-data": p.cert, "client-key-data": p.key,
		}}},
		"contexts": []object{{"name": name, "context": object{"cluster": name, "user": user, "namespace": "default"}}},
	}, "", "  ")
}

// writeServerFiles puts what the servers read into dir: the authority's
// certificate, a serving pair, and the key that signs service account tokens.
func (a *authority) writeServerFiles(dir string) error {
	serving, err := a.serving()
	if err != nil {
		return err
	}
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	accountsDER, err := x509.MarshalECPrivateKey(accounts)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"ca.crt":      a.pem,
		"serving.crt": serving.cert,
		"serving.key": serving.key,
		"sa.key":      encode("EC PRIVATE KEY", accountsDER),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
