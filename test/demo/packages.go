package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"operetta.dev/test/internal/screen"
)

// packageName is the name of the Package with its files, and packageDir the folder that they are from.
const (
	packageName = "webapp"
	packageDir  = "cue/webapp"
)

// packageObject is the part of a Package that the demo looks at.
type packageObject struct {
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
			Reason string `json:"reason"`
			// Message says why the Package is not served.
			Message string `json:"message"`
		} `json:"conditions"`
		SourceDigest string `json:"sourceDigest"`
		Canary       struct {
			Phase  string `json:"phase"`
			Digest string `json:"digest"`
		} `json:"canary"`
	} `json:"status"`
}

// notReady returns why the Package is not served, or "".
func (p packageObject) notReady() string {
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type != "Ready":
		case c.Status == "True":
			return ""
		default:
			return c.Reason + ": " + c.Message
		}
	}
	return "nothing is known of it"
}

// applyPackage applies the package as an object, and waits until it is served.
func (d *demo) applyPackage(ctx context.Context) error {
	st := d.screen.Start("apply the package as an object")
	begin := time.Now()
	err := d.putPackage(ctx, revision{deadline: goodRevision.deadline})
	if err == nil {
		err = d.waitServed(ctx, packageName)
	}
	st.End(err, "Package "+packageName+" is served after "+screen.Seconds(time.Since(begin)))
	return err
}

// short returns the beginning of a digest, which is enough for a person.
func short(digest string) string {
	const enough = len("sha256:") + 12
	if len(digest) <= enough {
		return digest
	}
	return digest[:enough] + "…"
}

// packagePath returns the path of a Package.
func packagePath(name string) string { return "/apis/operetta.dev/v1alpha1/packages/" + name }

// waitServed waits until a Package is served.
func (d *demo) waitServed(ctx context.Context, name string) error {
	return d.poll(ctx, d.timeout, "the Package "+name+" to be served", func(ctx context.Context) (bool, error) {
		var got packageObject
		err := d.cluster.get(ctx, packagePath(name), &got)
		if why := got.notReady(); err == nil && why != "" {
			err = errors.New(why)
		}
		return err == nil, err
	})
}

// putPackage applies a Package with the files of a folder, and that of a revision if it has one.
func (d *demo) putPackage(ctx context.Context, r revision) error {
	files := map[string]string{}
	all, err := filepath.Glob(filepath.Join(packageDir, "*.cue"))
	if err != nil {
		return err
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if name := filepath.Base(file); !strings.HasSuffix(name, "_test.cue") {
			files[name] = string(text)
		}
	}
	if r.text != "" {
		files["revision.cue"] = r.text
	}
	return d.putObject(ctx, map[string]any{
		"apiVersion": "operetta.dev/v1alpha1", "kind": "Package", "metadata": map[string]any{"name": packageName},
		"spec": map[string]any{"source": map[string]any{"inline": files}, "canary": r.canary()},
	})
}

// putObject applies an object.
func (d *demo) putObject(ctx context.Context, object map[string]any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return d.applyText(ctx, "object.json", text)
}

// leave deletes the resources and the Packages, which go when their resources are gone.
func (d *demo) leave(ctx context.Context) error {
	names := []string{packageName, greeterName}
	st := d.screen.Start("delete the Packages and their resources")
	begin := time.Now()
	resources, err := d.kindred(ctx)
	for _, name := range names {
		_, failed := d.cluster.run(ctx, "delete", "package", name, "--wait=false")
		err = errors.Join(err, failed)
	}
	for _, r := range append(resources, d.greeting) {
		_, failed := d.cluster.run(ctx, "delete", r.Kind, r.Metadata.Name, "--namespace", r.Metadata.Namespace, "--wait=false")
		err = errors.Join(err, failed)
	}
	for _, name := range names {
		if err != nil {
			break
		}
		err = d.poll(ctx, d.timeout, "the Package "+name+" to go", func(ctx context.Context) (bool, error) {
			err := d.cluster.get(ctx, packagePath(name), &packageObject{})
			if errors.Is(err, errAbsent) {
				return true, nil
			}
			return false, err
		})
	}
	st.End(err, "nothing is left after "+screen.Seconds(time.Since(begin)))
	return err
}
