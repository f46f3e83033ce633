package rendered

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Objects are rendered objects by kind and name, for example Service/weir-hub.
type Objects map[string]*unstructured.Unstructured

// Kustomize returns what `kubectl apply -k directory` would apply. The bases of the
// directory are beside it.
func Kustomize(directory string) (Objects, error) {
	if err := note(filepath.Join(directory, "..")); err != nil {
		return nil, err
	}
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	out, err := exec.Command(kubectl, "kustomize", directory).Output() //nolint:noctx // it only reads files
	if err != nil {
		return nil, fmt.Errorf("%w (KUBEBUILDER_ASSETS must name the directory of kubectl, see `make assets`)%s", err, said(err))
	}
	return Decode(out)
}

// Decode reads a stream of YAML documents. Two objects of one kind and name are an error,
// and so is one without a kind or a name.
func Decode(stream []byte) (Objects, error) {
	objects := Objects{}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096); ; {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(object.Object) == 0 {
			continue
		}
		name := object.GetKind() + "/" + object.GetName()
		if object.GetName() == "" || objects[name] != nil {
			return nil, fmt.Errorf("%s has no name or is there twice", name)
		}
		objects[name] = &object
	}
}

// As returns the object of a name as a Go type. The object must not have fields that
// the type lacks.
func As[T any](objects Objects, name string) (*T, error) {
	object, ok := objects[name]
	if !ok {
		return nil, fmt.Errorf("%s is not rendered", name)
	}
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return into, nil
}

// note opens every file below a directory, so that the go command knows that the result
// of a test depends on them: it does not see what other programs read.
func note(directory string) error {
	return filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return f.Close()
	})
}

// said is what a program that failed wrote to its standard error.
func said(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return ": " + string(exit.Stderr)
	}
	return ""
}
