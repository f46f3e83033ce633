package translate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-dev/weir/internal/translate"
)

func TestSamplesAreFreeOfDoubts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("config/samples has %d files (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sample := defaulted(t, text)
			sample.Namespace = "default" // as kubectl does
			if warnings, errs := translate.Validate(sample); len(errs) > 0 || len(warnings) > 0 {
				t.Errorf("Validate = %v, %v; want neither warnings nor errors", warnings, errs)
			}
		})
	}
}
