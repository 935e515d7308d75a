// Package certificates says which serving certificate a process has, and which certificates its callers have
// to trust, so that one is replaced by the next without a request that fails. It makes certificates with the
// library of client-go, reads no cluster and keeps nothing.
//
//	            the next is made ─┐           ┌─ everybody has trusted it for the time of Overlap
//	served   first ───────────────┼───────────┤ second ──────────────
//	trusted  first ───────────────┤ first and second ────────────────
//
// All state is in the data of a Secret. Each certificate has an authority of its own, whose key is forgotten
// when it has signed that certificate: whoever reads the Secret cannot make another one.
package certificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
)

// The keys of the Secret. The first two are those of a Secret of type kubernetes.io/tls.
const (
	certificateKey     = "tls.crt"
	privateKeyKey      = "tls.key"
	AuthoritiesKey     = "ca.crt"
	nextCertificateKey = "next.crt"
	nextPrivateKeyKey  = "next.key"
)

// Options say what certificates are for.
type Options struct {
	// Hosts are the names and addresses at which callers reach the process; the first one names the certificate.
	Hosts []string
	// Lifetime is how long a certificate is valid. The next one is made when a third of it is left.
	Lifetime time.Duration
	// Overlap is how long everybody trusts the next certificate until it is served.
	Overlap time.Duration
}

// A Result is what is to be kept.
type Result struct {
	// Data is the data of the Secret, and Changed says whether it is new.
	Data    map[string][]byte
	Changed bool
	// Again is when to ask again, if nothing else happens.
	Again time.Duration
}

// Next returns what a Secret is to have. trusted is how long ago all callers were told to trust the authorities in
// it; it is negative if a caller has not been told. It errors if no certificate can be made.
func Next(data map[string][]byte, o Options, trusted time.Duration, now time.Time) (Result, error) {
	current, err := o.pair(data[certificateKey], data[privateKeyKey], now)
	if err != nil || !bytes.Contains(data[AuthoritiesKey], current.authority) {
		// Nobody can be served, so there is nothing to wait for.
		made, failed := o.make()
		return Result{Data: made.data(made.authority), Changed: true, Again: time.Second}, failed
	}
	next, err := o.pair(data[nextCertificateKey], data[nextPrivateKeyKey], now)
	has := err == nil && bytes.Contains(data[AuthoritiesKey], next.authority)
	left := current.expires.Sub(now)
	switch due := left - o.Lifetime/3; {
	case !has && due > 0:
		return Result{Data: data, Again: due}, nil
	case !has:
		made, err := o.make()
		if err != nil {
			return Result{}, err
		}
		out := current.data(slices.Concat(current.authority, made.authority))
		out[nextCertificateKey], out[nextPrivateKeyKey] = made.certificate, made.key
		return Result{Data: out, Changed: true, Again: o.Overlap}, nil
	case trusted < o.Overlap:
		return Result{Data: data, Again: max(o.Overlap-max(trusted, 0), time.Second/10)}, nil
	default:
		// What connected a moment ago may still be shown the certificate before.
		return Result{Data: next.data(slices.Concat(next.authority, current.authority)), Changed: true, Again: time.Second}, nil
	}
}

// Serving returns the certificate that the data of a Secret has to be served. It errors if there is none.
func Serving(data map[string][]byte) (*tls.Certificate, error) {
	if len(data[certificateKey]) == 0 {
		return nil, errors.New("the Secret has no certificate yet")
	}
	out, err := tls.X509KeyPair(data[certificateKey], data[privateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the Secret: %w", err)
	}
	return &out, nil
}

// A pair is a certificate with its key.
type pair struct {
	certificate, key []byte
	// authority is the certificate that has signed it, as PEM.
	authority []byte
	expires   time.Time
}

// data returns the data of a Secret with a pair that is served.
func (p pair) data(authorities []byte) map[string][]byte {
	return map[string][]byte{certificateKey: p.certificate, privateKeyKey: p.key, AuthoritiesKey: authorities}
}

// make makes a certificate.
func (o Options) make() (pair, error) {
	with := cert.SelfSignedCertKeyOptions{Host: o.Hosts[0], MaxAge: o.Lifetime + backdated}
	for _, host := range o.Hosts[1:] {
		if ip := net.ParseIP(host); ip != nil {
			with.AlternateIPs = append(with.AlternateIPs, ip)
			continue
		}
		with.AlternateDNS = append(with.AlternateDNS, host)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKeyWithOptions(with)
	if err != nil {
		return pair{}, fmt.Errorf("making a certificate for %s: %w", o.Hosts[0], err)
	}
	return o.pair(certificate, key, time.Now())
}

// backdated is how much earlier than now a new certificate is valid: clocks differ.
const backdated = time.Hour

// pair reads a pair. It errors if it is none, if it is not valid now, or not for a host.
func (o Options) pair(certificate, key []byte, now time.Time) (pair, error) {
	loaded, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return pair{}, fmt.Errorf("reading a certificate: %w", err)
	}
	if len(loaded.Certificate) < 2 {
		return pair{}, errors.New("a certificate comes without its authority")
	}
	leaf := loaded.Leaf
	for _, host := range o.Hosts {
		if err := leaf.VerifyHostname(host); err != nil {
			return pair{}, fmt.Errorf("a certificate is for other hosts: %w", err)
		}
	}
	authority, err := x509.ParseCertificate(loaded.Certificate[1])
	if err != nil {
		return pair{}, fmt.Errorf("reading the authority of a certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err != nil {
		return pair{}, fmt.Errorf("checking a certificate: %w", err)
	}
	return pair{certificate, key, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: authority.Raw}), leaf.NotAfter}, nil
}
