"""The variables in which programs for several vendors of models look for keys, by vendor."""

from __future__ import annotations

ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN")
OPENAI = ("OPENAI_API_KEY",)
GOOGLE = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY")
AZURE = ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY")
OTHERS = (
    *(("OPENROUTER_API_KEY",), ("DEEPSEEK_API_KEY",), ("GROQ_API_KEY",)),
    *(("MISTRAL_API_KEY",), ("XAI_API_KEY",)),
)
