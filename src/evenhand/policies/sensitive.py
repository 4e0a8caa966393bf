"""Columns whose names say that they hold what the law protects: age, sex, race, marital status and
the like. A list of words, kept here alone; a column that hides the same under another name is not
found by it (`evenhand.tables.data_warnings` measures that).
"""

import re
import unicodedata

WORDS = {
    "age": "age ages birth birthdate birthday birthyear dob yob born senior seniors elderly alter "
    "lebensalter geburt geburtsdatum geburtsjahr geburtstag geboren naissance datenaissance annais "
    "edad nacimiento fechanacimiento anonacimiento",
    "sex": "sex sexes gender genders female male females males woman women man men femme homme "
    "geschlecht weiblich maennlich mannlich frau mann genre sexe feminin masculin sexo genero "
    "mujer hombre transgender lgbt sexualorientation orientationsexuelle orientacionsexual",
    "race": "race races racial ethnic ethnicity ethnicities ethnie ethnique hispanic latino latina "
    "latinx black white asian afam skincolor skincolour ethnizitat ethnizitaet ethnisch hautfarbe "
    "rasse herkunft raza etnia etnico etnica",
    "marital status": "marital married marriage marstat maritalstatus civilstatus spouse widow "
    "widowed divorced unmarried husband wife familienstand verheiratet ledig geschieden verwitwet "
    "ehe etatcivil situationmatrimoniale situationfamiliale matrimonial marie mariee divorce "
    "veuf veuve celibataire estadocivil casado casada soltero soltera divorciado divorciada "
    "viudo viuda matrimonio",
    "religion": "religion religions religious faith church muslim christian jewish jew hindu "
    "catholic konfession religioes religios kirche kirchensteuer glaube religieux religieuse "
    "confession eglise religioso religiosa iglesia",
    "nationality": "nationality nationalities citizen citizenship nationalorigin immigrant "
    "immigration migrant foreigner foreign foreignworker birthplace birthcountry nativity "
    "nationalitat nationalitaet staatsangehorigkeit staatsangehoerigkeit staatsburgerschaft "
    "staatsbuergerschaft auslander auslaender migrationshintergrund nationalite citoyennete "
    "etranger etrangere immigre nacionalidad ciudadania extranjero extranjera inmigrante",
    "pregnancy": "pregnant pregnancy maternity schwanger schwangerschaft mutterschutz enceinte "
    "grossesse maternite embarazada embarazo maternidad",
    "disability": "disability disabilities disabled handicap handicapped impairment wheelchair "
    "behinderung behindert schwerbehindert schwerbehinderung invalide invaliditat invaliditaet "
    "invalidite handicape discapacidad discapacitado discapacitada minusvalia invalidez",
    "health": "health illness disease diagnosis hiv genetic genetics gesundheit krankheit sante "
    "maladie salud enfermedad",
    "political opinion": "political politics union unionmember party partei gewerkschaft "
    "politisch politique syndicat parti politica politico sindicato",
}
"""What is protected, and words for it in English, German, French and Spanish: without accents, in
small letters. A word of several parts (civil status, état civil) is written without a space.
"""

_KIND = {word: kind for kind, words in WORDS.items() for word in words.split()}


def protected_kind(column: str) -> str | None:
    """What a column's name says that it holds, if that is protected.

    Parameters
    ----------
    column : str
        Its name, in any spelling: "birthDate", "ÂGE_client", "Familienstand".

    Returns
    -------
    str or None
        A key of `WORDS`; None for all other names.

    Examples
    --------
    >>> protected_kind("estado civil"), protected_kind("AgeAtLoan"), protected_kind("average")
    ('marital status', 'age', None)
    """
    plain = unicodedata.normalize("NFKD", column.replace("ß", "ss"))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", plain)
    words = [part.lower() for part in parts]
    for length in (3, 2, 1):
        for first in range(len(words) - length + 1):
            kind = _KIND.get("".join(words[first : first + length]))
            if kind is not None:
                return kind
    return None
