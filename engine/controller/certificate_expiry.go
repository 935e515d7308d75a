package controller

import (
	"crypto/tls"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
)

// logExpired logs when a server presents an expired certificate. The certificate is served all the same: clients that
// do not verify it continue to work, and clients that verify it report the failure to their own users only. Nothing
// else notices, because no event marks the expiry of a file. Anyone who reaches the port can cause a line, so the
// lines are limited to one in a while.
func logExpired(config *tls.Config, log logr.Logger, now func() time.Time) {
	sometimes := &rate.Sometimes{Interval: expiryInterval}
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		served := shown(config, hello)
		if served != nil && served.Leaf != nil && now().After(served.Leaf.NotAfter) {
			sometimes.Do(func() {
				log.Info("the certificate that is served has expired, so clients that verify it refuse the connection; a new one is taken without a restart",
					"expired", served.Leaf.NotAfter.UTC().Format(time.RFC3339))
			})
		}
		return nil, nil //nolint:nilnil // that is how the standard library is told to go on with the same configuration
	}
}

// shown returns the certificate that a server shows, or nil.
func shown(config *tls.Config, hello *tls.ClientHelloInfo) *tls.Certificate {
	switch {
	case config.GetCertificate != nil: // a server sets it only when it starts
		out, _ := config.GetCertificate(hello) // the handshake that follows has the same error
		return out
	case len(config.Certificates) > 0:
		return &config.Certificates[0]
	}
	return nil
}
