package main

// These types are the parts of Grafana's JSON model, schema version 39, that the dashboards
// use.

type dashboard struct {
	Title         string           `json:"title"`
	UID           string           `json:"uid"`
	Description   string           `json:"description"`
	Tags          []string         `json:"tags"`
	SchemaVersion int              `json:"schemaVersion"`
	Version       int              `json:"version"`
	Editable      bool             `json:"editable"`
	Refresh       string           `json:"refresh"`
	Time          map[string]any   `json:"time"`
	Timezone      string           `json:"timezone"`
	Links         []dashboardLink  `json:"links"`
	Templating    list[variable]   `json:"templating"`
	Annotations   list[annotation] `json:"annotations"`
	Panels        []panel          `json:"panels"`
}

type list[T any] struct {
	List []T `json:"list"`
}

type dashboardLink struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	URL         string   `json:"url"`
	Tags        []string `json:"tags"`
	KeepTime    bool     `json:"keepTime"`
	IncludeVars bool     `json:"includeVars"`
	AsDropdown  bool     `json:"asDropdown"`
	TargetBlank bool     `json:"targetBlank"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type variable struct {
	Name       string         `json:"name"`
	Label      string         `json:"label"`
	Type       string         `json:"type"`
	Datasource *source        `json:"datasource,omitempty"`
	Query      string         `json:"query"`
	Refresh    int            `json:"refresh"`
	Sort       int            `json:"sort"`
	IncludeAll bool           `json:"includeAll"`
	Multi      bool           `json:"multi"`
	AllValue   string         `json:"allValue,omitempty"`
	Current    map[string]any `json:"current,omitempty"`
}

type annotation struct {
	Name        string `json:"name"`
	Datasource  source `json:"datasource"`
	Enable      bool   `json:"enable"`
	IconColor   string `json:"iconColor"`
	Expr        string `json:"expr"`
	Step        string `json:"step"`
	TitleFormat string `json:"titleFormat"`
	TextFormat  string `json:"textFormat"`
}

type panel struct {
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description,omitempty"`
	ID              int              `json:"id"`
	GridPos         place            `json:"gridPos"`
	Datasource      *source          `json:"datasource,omitempty"`
	FieldConfig     *fieldConfig     `json:"fieldConfig,omitempty"`
	Options         map[string]any   `json:"options,omitempty"`
	Targets         []target         `json:"targets,omitempty"`
	Transformations []transformation `json:"transformations,omitempty"`
	Collapsed       *bool            `json:"collapsed,omitempty"` // of a row
	Panels          *[]panel         `json:"panels,omitempty"`    // of a row
}

type place struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type fieldConfig struct {
	Defaults  defaults `json:"defaults"`
	Overrides []any    `json:"overrides"`
}

type defaults struct {
	Unit       string     `json:"unit"`
	Min        *int       `json:"min,omitempty"`
	NoValue    string     `json:"noValue,omitempty"`
	Color      any        `json:"color"`
	Custom     any        `json:"custom,omitempty"`
	Thresholds thresholds `json:"thresholds"`
	Links      []dataLink `json:"links,omitempty"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

// A step is the color of values from one on; the first has none.
type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

type dataLink struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

type target struct {
	RefID        string `json:"refId"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat,omitempty"`
	Instant      bool   `json:"instant,omitempty"`
	Range        bool   `json:"range"`
	Format       string `json:"format,omitempty"`
}

type transformation struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}
