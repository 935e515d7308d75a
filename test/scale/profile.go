package main

import (
	"context"
	_ "embed" // for the text of a file
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
)

// profiled is a file that lets a program be profiled. It is added where one is built for that, so that
// nothing of it ships.
//
//go:embed profile/profile.go.txt
var profiled []byte

// profileVariable tells a program where to serve its profiles.
const profileVariable = "OPERETTA_SCALE_PROFILE"

// overlay writes an overlay for go build that adds profiled to the program in a folder, and returns
// the flag that uses it.
func overlay(dir, program string) (string, error) {
	source, file := filepath.Join(dir, "profile.go"), filepath.Join(dir, "overlay.json")
	at, err := filepath.Abs(filepath.Join(program, "profile_overlay.go"))
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]any{"Replace": map[string]string{at: source}})
	if err != nil {
		return "", err
	}
	err = errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(source, profiled, 0o600), os.WriteFile(file, content, 0o600))
	return "-overlay=" + file, err
}

// saveProfiles writes what the process has done since the last call to files with a prefix. Without a
// prefix it forgets it.
func (p *process) saveProfiles(ctx context.Context, prefix string) error {
	for _, name := range []string{"cpu", "heap", "allocs"} {
		content, err := p.profile(ctx, name)
		if err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		if prefix == "" {
			continue
		}
		if err := os.WriteFile(prefix+"-"+name+".pprof", content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) profile(ctx context.Context, name string) ([]byte, error) {
	var dialer net.Dialer
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", p.socket)
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/"+name, nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
