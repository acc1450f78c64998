"""A tool is one documented file; what is wrong stops the start."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field

from toolbox import registry, selectors
from toolbox.types import ToolContext


class Arguments(BaseModel):
    place: str = Field(description="Where.")


class Silent(BaseModel):
    place: str


def weather(context: ToolContext, arguments: Arguments) -> str:
    """The weather of a place."""
    return f"Sunny in {arguments.place}."


def undocumented(context: ToolContext, arguments: Arguments) -> str:
    return ""


def test_a_tool_is_told_to_the_model_with_docstring_and_schema() -> None:
    with registry.temporarily(registry.made("weather", weather, Arguments)):
        spec = next(spec for spec in selectors.specs() if spec.name == "weather")
    assert spec.description == "The weather of a place."
    assert spec.input_schema["properties"] == {"place": {"type": "string", "description": "Where."}}
    assert registry.find("weather") is None


@pytest.mark.parametrize(
    ("name", "function", "arguments", "says"),
    [
        ("climate", weather, Arguments, "share one name"),
        ("We ather", weather, Arguments, "cannot be"),
        ("undocumented", undocumented, Arguments, "no docstring"),
        ("weather", weather, Silent, "place"),
    ],
)
def test_a_misnamed_or_unexplained_tool_is_refused(
    name: str, function: object, arguments: type[BaseModel], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        registry.tool(name, arguments=arguments)(function)  # type: ignore[arg-type]


def test_a_taken_name_is_refused() -> None:
    with (
        registry.temporarily(registry.made("weather", weather, Arguments)),
        pytest.raises(ValueError, match="already"),
    ):
        registry.tool("weather", arguments=Arguments)(weather)


def test_every_file_of_the_folder_is_found_in_one_order() -> None:
    names = [spec.name for spec in selectors.specs()]
    assert "memory_tool" in names
    assert names == sorted(names)
